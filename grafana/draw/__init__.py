"""Pictures of the dashboards, drawn without a Grafana; not part of any test."""
