"""Addresses to listen on, as people write them."""

import ipaddress
import re
from typing import Final

from msgspec import Struct

from agent.errors import ConfigError

ACCEPTED: Final = "`:9838`, `9838`, `0.0.0.0:9838`, `[::]:9838`, `localhost:9838` or `unix:/run/heatsoak.sock`"
_UNIX_PATH_LIMIT_BYTES: Final = 107  # sun_path less its final NUL
_PORT = re.compile(r"[0-9]{1,5}")
_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))*")
_DIGITS_AND_DOTS = re.compile(r"[0-9.]+")


class ListenAddress(Struct, frozen=True):
    """A TCP address, or a Unix socket where ``path`` is not empty.

    An empty ``host`` means every address of the machine, IPv4 and IPv6; port 0 lets the kernel choose.
    """

    host: str = ""
    port: int = 0
    path: str = ""

    def __str__(self) -> str:
        """Return the address in a form that ``parse_listen`` takes."""
        if self.path:
            return f"unix:{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_listen(text: str) -> ListenAddress:
    """Return the address that ``text`` names.

    Raises:
        ConfigError: ``text`` is none of the accepted forms; the message lists them.
    """
    address = _unix(text) if text.startswith("unix:") else _tcp(text)
    if address is None:
        raise ConfigError([f"{text!r} is no address to listen on; right would be {ACCEPTED}"])
    return address


def _unix(text: str) -> ListenAddress | None:
    path = text.removeprefix("unix:")
    size_bytes = len(path.encode("utf-8", "replace"))
    if not path.startswith("/") or not path.isprintable() or size_bytes > _UNIX_PATH_LIMIT_BYTES:
        return None
    return ListenAddress(path=path)


def _tcp(text: str) -> ListenAddress | None:
    host, colon, port = text.rpartition(":")
    if not _PORT.fullmatch(port) or int(port) > 65535:
        return None
    if not colon or not host:
        return ListenAddress(port=int(port))
    if host.startswith("[") and host.endswith("]"):
        return ListenAddress(host[1:-1], int(port)) if _is_ip(host[1:-1], 6) else None
    if _is_ip(host, 4) or (_NAME.fullmatch(host) and len(host) <= 253 and not _DIGITS_AND_DOTS.fullmatch(host)):
        return ListenAddress(host, int(port))
    return None


def _is_ip(text: str, version: int) -> bool:
    try:
        return text.isprintable() and ipaddress.ip_address(text).version == version
    except ValueError:
        return False
