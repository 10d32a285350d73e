"""The web configuration in use: read at start, read again when its file or a certificate changes."""

import ssl
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
import structlog

from exporters.errors import WebConfigError
from exporters.web.schema import RateLimit, TlsServerConfig, read_document
from exporters.web.stats import WebStats
from exporters.web.tls import build_context, names_in

_CHECK_EVERY_S: Final = 1.0

_log = structlog.get_logger("web")

Fingerprint = tuple[tuple[int, int, int] | None, ...]


class WebConfig(msgspec.Struct, frozen=True):
    """What the server needs of a web configuration; the default is plain HTTP, open to all."""

    tls: ssl.SSLContext | None = None
    allowed_sans: frozenset[str] = frozenset()
    users: Mapping[str, str] = MappingProxyType({})
    """bcrypt hashes by user name; empty where nobody needs to say who they are."""
    headers: tuple[tuple[str, str], ...] = ()
    rate_limit: RateLimit = RateLimit()

    def allows(self, certificate: Mapping[str, Any] | None) -> bool:
        """Return whether a client with this certificate (None without one) may speak."""
        return not self.allowed_sans or bool(self.allowed_sans & names_in(certificate))


class ConfigSource(Protocol):
    """Where the server asks for the configuration, at each connection and each request."""

    def current(self) -> WebConfig:
        """Return the configuration in use; never raises."""


class FixedConfig:
    """A configuration that never changes."""

    def __init__(self, config: WebConfig | None = None) -> None:
        self._config = config or WebConfig()

    def current(self) -> WebConfig:
        """Return it."""
        return self._config


class WatchedConfig:
    """A web configuration file, looked at again at most once a second.

    A change in the file or in a file it names is taken over as a whole; where the new state cannot be used,
    the old one stays, which is said once and counted in ``stats``.
    """

    def __init__(self, path: Path, stats: WebStats, monotonic_s: Callable[[], float]) -> None:
        """Read the file.

        Raises:
            WebConfigError: it cannot be used.
        """
        self._path = path
        self._stats = stats
        self._monotonic_s = monotonic_s
        self._watched: tuple[Path, ...] = (path,)
        self._seen: Fingerprint = ()
        self._complaint = ""
        self._checked_s = monotonic_s()
        self._config = self._load()

    def current(self) -> WebConfig:
        """Return the configuration in use, having looked whether it changed."""
        now_s = self._monotonic_s()
        if now_s - self._checked_s >= _CHECK_EVERY_S:
            self._checked_s = now_s
            if self._complaint or self._fingerprint() != self._seen:
                self._reload()
        return self._config

    def _reload(self) -> None:
        try:
            self._config = self._load()
        except WebConfigError as error:
            if str(error) != self._complaint:
                _log.error("web_config_kept", path=str(self._path), faults=error.faults)
            self._complaint = str(error)
            self._stats.reload_ok = False
        else:
            self._complaint = ""
            _log.info("web_config_reloaded", path=str(self._path))

    def _load(self) -> WebConfig:
        self._seen = self._fingerprint()
        _refuse_special((self._path,))
        document = read_document(self._path)
        tls = document.tls_server_config
        self._watched = (self._path, *_files(tls, self._path.parent))
        self._seen = self._fingerprint()
        _refuse_special(self._watched)
        config = WebConfig(
            tls=build_context(tls, self._path.parent, str(self._path)) if tls.enabled() else None,
            allowed_sans=frozenset(tls.client_allowed_sans),
            users=document.basic_auth_users,
            headers=tuple((name, value) for name, value in document.http_server_config.headers.items() if value),
            rate_limit=document.rate_limit,
        )
        self._stats.reload_ok = True
        return config

    def _fingerprint(self) -> Fingerprint:
        return tuple(_fingerprint(path) for path in self._watched)


def faults_of(path: Path) -> tuple[str, ...]:
    """Return a line for each fault of the web configuration in the file ``path`` and in the files it names."""
    try:
        WatchedConfig(path, WebStats(), lambda: 0.0)
    except WebConfigError as error:
        return error.faults
    return ()


def _refuse_special(paths: tuple[Path, ...]) -> None:
    """Refuse what is there and is no regular file: reading a pipe would hold up every client.

    Raises:
        WebConfigError: there is such a path.
    """
    faults = [f"{path}: must be a regular file" for path in paths if _is_special(path)]
    if faults:
        raise WebConfigError(faults)


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False  # who reads it says what is wrong


def _files(tls: TlsServerConfig, base: Path) -> list[Path]:
    return [base / name for name in (tls.cert_file, tls.key_file, tls.client_ca_file) if name]


def _fingerprint(path: Path) -> tuple[int, int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ino, status.st_size
