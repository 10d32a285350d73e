"""Who holds which card, asked of a real gRPC server."""
