"""What leaves the agent: metrics, web pages, files; made from snapshots, knowing of the agent only its model."""
