"""The HTTP side: metrics, status page, JSON status and health over TCP, TLS and Unix sockets."""
