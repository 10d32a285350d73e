"""Messages to systemd over NOTIFY_SOCKET: ready, reloading, stopping, watchdog."""

import os
import socket
from collections.abc import Mapping

import structlog

_log = structlog.get_logger("notify")


class Notifier:
    """Sends state to the service manager; does nothing where there is none."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        """Read ``NOTIFY_SOCKET`` and ``WATCHDOG_USEC`` from ``environ`` once."""
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address
        usec = environ.get("WATCHDOG_USEC", "")
        self._watchdog = usec.isdigit() and environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())

    def ready(self, status: str) -> None:
        """Say that the service has started, with one line of status for people."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self, monotonic_s: float) -> None:
        """Say that a reload began at this time of CLOCK_MONOTONIC; ``ready`` ends it."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={int(monotonic_s * 1e6)}")

    def stopping(self) -> None:
        """Say that the service is stopping."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Feed the watchdog, where one is set for this process."""
        if self._watchdog:
            self._send("WATCHDOG=1")

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
                sock.sendto(message.encode(), self._address)
        except OSError as error:
            _log.debug("notify_failed", error=str(error))
