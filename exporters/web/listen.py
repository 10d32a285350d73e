"""Listening sockets: TCP over IPv4, IPv6 or both, Unix sockets, and sockets that systemd hands over."""

import os
import socket
import stat
from collections.abc import Iterable, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from exporters.errors import CannotListen

_BACKLOG: Final = 512
_FIRST_ACTIVATED_DESCRIPTOR: Final = 3
_UNIX_MODE: Final = 0o660


class Address(Protocol):
    """Where to listen: a Unix socket where ``path`` is not empty, else TCP; an empty host means every address."""

    @property
    def host(self) -> str:
        """Return the host name or IP address."""

    @property
    def port(self) -> int:
        """Return the port; 0 lets the kernel choose."""

    @property
    def path(self) -> str:
        """Return the path of the Unix socket."""


def open_listeners(addresses: Iterable[Address]) -> list[socket.socket]:
    """Return one listening socket or more for each address, or none at all.

    Raises:
        CannotListen: an address is taken, not this machine's, or not permitted.
    """
    wanted = list(addresses)
    ipv4_ports = {address.port for address in wanted if not address.path and "." in address.host}
    opened: list[socket.socket] = []
    try:
        for address in wanted:
            opened += [_unix(address.path)] if address.path else _tcp(address, ipv4_ports)
    except CannotListen:
        for listener in opened:
            close_listener(listener)
        raise
    return opened


def activated_listeners(environ: MutableMapping[str, str], pid: int) -> list[socket.socket]:
    """Return the sockets systemd opened for this process, and take their variables out of ``environ``."""
    meant_for = environ.pop("LISTEN_PID", "")
    count = environ.pop("LISTEN_FDS", "")
    environ.pop("LISTEN_FDNAMES", None)
    if meant_for != str(pid) or not count.isdecimal():
        return []
    descriptors = range(_FIRST_ACTIVATED_DESCRIPTOR, _FIRST_ACTIVATED_DESCRIPTOR + int(count))
    listeners = []
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
        listener = socket.socket(fileno=descriptor)
        listener.setblocking(False)
        listeners.append(listener)
    return listeners


def describe(listener: socket.socket) -> str:
    """Return where ``listener`` listens, as ``127.0.0.1:9838``, ``[::]:9838`` or ``unix:/run/heatsoak.sock``."""
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{name}"
    host, port = name[:2]
    return f"[{host}]:{port}" if listener.family == socket.AF_INET6 else f"{host}:{port}"


def close_listener(listener: socket.socket) -> None:
    """Close a listening socket, if it is open, and remove its path, if it has one."""
    if listener.fileno() < 0:
        return
    path = listener.getsockname() if listener.family == socket.AF_UNIX else ""
    listener.close()
    if path:
        with suppress(OSError):
            Path(path).unlink()


def _tcp(address: Address, ipv4_ports: set[int]) -> list[socket.socket]:
    if not address.host:
        return [_every_address(address.port)]
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"cannot listen on {address.host}:{address.port}: {error.strerror}") from error
    if address.host == "::":
        return [_bind(socket.AF_INET6, ("::", address.port), dual=address.port not in ipv4_ports)]
    listeners = []
    for family, name in dict.fromkeys((family, name) for family, _, _, _, name in found):
        listeners.append(_bind(family, name))
    return listeners


def _every_address(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        return _bind(socket.AF_INET6, ("::", port), dual=True)
    return _bind(socket.AF_INET, ("0.0.0.0", port))  # noqa: S104 - every address is what was asked for


def _bind(family: int, name: tuple[object, ...], *, dual: bool = False) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dual)
        listener.bind(name)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        host, port = name[:2]
        shown = f"[{host}]" if family == socket.AF_INET6 else host
        raise CannotListen(f"cannot listen on {shown}:{port}: {error.strerror}") from error
    return listener


def _unix(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_left_over(path)
        listener.bind(path)
        Path(path).chmod(_UNIX_MODE)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise CannotListen(f"cannot listen on unix:{path}: {error.strerror or error}") from error
    return listener


def _remove_left_over(path: str) -> None:
    """Remove a socket that nobody listens on any more; anything else stays and makes the bind fail."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(Path(path).lstat().st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            try:
                caller.connect(path)
            except ConnectionRefusedError:
                Path(path).unlink()
