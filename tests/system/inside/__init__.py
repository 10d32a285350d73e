"""Scripts that run on the machines and in the containers under test, by themselves."""
