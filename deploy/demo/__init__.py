"""The demo: agents that play made-up recordings, with history, watched by a real Prometheus and Alertmanager."""
