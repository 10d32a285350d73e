"""Asks a running agent what it says: the part of ``/api/v1/status`` that ``heatsoak check`` reads."""

import base64
import http.client
import re
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from agent.config.listen import parse_listen
from agent.config.settings import Settings
from agent.errors import EXIT_UNKNOWN_CARD, ConfigError, HeatsoakError, reason_of
from agent.model.snapshot import CardIdentity
from agent.model.text import clean_label
from agent.model.verdict import Finding
from agent.model.vocabulary import CardState, NodeState, WorkloadState

PATH: Final = "/api/v1/status"
MOST_BYTES: Final = 16 << 20
ACCEPTED: Final = "`http://127.0.0.1:9838`, `https://gpu17.example:9838` or `unix:/run/heatsoak.sock`"
_NOT_IN_A_HOST: Final = re.compile(r"[\x00-\x20\x7f-\xa0<>\"\\^`{|}]")
_ANYWHERE: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - told apart, not listened on


class NoAnswerError(HeatsoakError):
    """No agent answered, or what answered is none."""

    exit_code = EXIT_UNKNOWN_CARD


class CardStatus(msgspec.Struct, frozen=True):
    """One card as the agent tells of it; ``state`` is None until it was judged."""

    identity: CardIdentity
    state: CardState | None = None
    workload: WorkloadState | None = None
    since_wall_s: float | None = None
    findings: tuple[Finding, ...] = ()
    values: dict[str, float] = {}


class NodeStatus(msgspec.Struct, frozen=True):
    """The node as the agent tells of it."""

    state: NodeState | None = None
    since_wall_s: float | None = None
    findings: tuple[Finding, ...] = ()


class NvmlStatus(msgspec.Struct, frozen=True):
    """How the driver fares, as the agent tells of it."""

    up: bool = False
    error: str = ""
    advice: str = ""


class Status(msgspec.Struct, frozen=True):
    """What the agent says; not ``fresh`` where its loop stands still."""

    version: int
    node: NodeStatus
    cards: tuple[CardStatus, ...]
    nvml: NvmlStatus = NvmlStatus()
    fresh: bool = True

    @property
    def starting(self) -> bool:
        """Return whether nothing can be said yet: the driver is being initialised, or hangs there."""
        return not self.nvml.up and self.nvml.error in ("STARTING", "HUNG") and not self.cards


def url_of(settings: Settings) -> str:
    """Return where the agent of these settings answers on this machine; the first address counts.

    Raises:
        ConfigError: the kernel chose the port, so that nobody knows it.
    """
    text = settings.web.listen[0]
    if parse_listen(text).port == 0 and not parse_listen(text).path:
        raise ConfigError([f"web.listen is {text!r}: the kernel chose the port; right would be --url, as {ACCEPTED}"])
    return url_at(text)


def url_at(text: str) -> str:
    """Return the URL by which this machine reaches an agent that listens at ``text``, as ``[::]:9838``."""
    address = parse_listen(text)
    if address.path:
        return f"unix:{address.path}"
    host = _ANYWHERE.get(address.host, address.host)
    return f"http://[{host}]:{address.port}" if ":" in host else f"http://{host}:{address.port}"


def fetch(url: str, timeout_s: float, ca_file: Path | None = None) -> Status:
    """Return what the agent at ``url`` says; ``unix:/path`` names a socket, user and password may stand in it.

    Raises:
        ConfigError: ``url`` is no URL of an agent, or ``ca_file`` holds no certificates.
        NoAnswerError: nothing answers there in time, or it is no agent.
    """
    shown = clean_label(_without_password(url), 300)
    connection, headers = _connection_to(url, timeout_s, ca_file)
    try:
        data = _get(connection, headers)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NoAnswerError(
            f"no agent answers at {shown} ({reason_of(error)}); is heatsoak running, is the URL right?"
        ) from error
    try:
        return msgspec.json.decode(data, type=Status)
    except msgspec.MsgspecError as error:
        raise NoAnswerError(f"what answers at {shown} is no agent of this version: {error}") from error


def _get(connection: http.client.HTTPConnection, headers: Mapping[str, str]) -> bytes:
    try:
        connection.request("GET", PATH, headers=dict(headers))
        response = connection.getresponse()
        data = response.read(MOST_BYTES)
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise http.client.HTTPException(f"HTTP {response.status} {response.reason}")
    return data


def _connection_to(
    url: str, timeout_s: float, ca_file: Path | None
) -> tuple[http.client.HTTPConnection, Mapping[str, str]]:
    """Return a connection that is not open yet, and the headers that go with each request."""
    if ca_file is not None and not url.startswith("https:"):
        raise ConfigError([f"--ca-file {ca_file}: {_without_password(url)!r} is not spoken to by TLS; leave it out"])
    if url.startswith("unix:/"):
        return _UnixConnection(url.removeprefix("unix:"), timeout_s), {}
    parts, host, port = _parts_of(url)
    headers = {}
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout_s), headers
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except OSError as error:
        wanted = "right would be a file of certificates in PEM form"
        raise ConfigError([f"--ca-file {ca_file}: cannot be used ({reason_of(error)}); {wanted}"]) from error
    return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context), headers


def _parts_of(url: str) -> tuple[SplitResult, str, int | None]:
    """Return a URL's parts, its host and its port, None where it names none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or port == 0 or _NOT_IN_A_HOST.search(host):
        raise ConfigError([f"{_without_password(url)!r} is no URL of an agent; right would be {ACCEPTED}"])
    return parts, host, port


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return scheme + separator + rest.rpartition("@")[2] if separator else url
