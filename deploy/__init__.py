"""What runs beside the agent: rules, manifests, units, the demo."""
