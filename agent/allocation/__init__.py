"""Who holds which card: asked of the kubelet and of Slurm, away from the loop."""
