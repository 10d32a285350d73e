"""The exporter-toolkit's web configuration: its YAML form, decoded strictly into frozen structs."""

import difflib
import re
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml

from exporters.errors import WebConfigError

ClientAuth = Literal[
    "",
    "NoClientCert",
    "RequestClientCert",
    "RequireAnyClientCert",
    "RequireClientCert",
    "VerifyClientCertIfGiven",
    "RequireAndVerifyClientCert",
]
TlsVersion = Literal["TLS10", "TLS11", "TLS12", "TLS13"]
Curve = Literal["CurveP256", "CurveP384", "CurveP521", "X25519"]
TLS_VERSIONS: Final[tuple[TlsVersion, ...]] = ("TLS10", "TLS11", "TLS12", "TLS13")
_MAX_FILE_BYTES: Final = 1024 * 1024
_WANTED: Final = "right would be a YAML file in the exporter-toolkit's form, see docs/web.md"
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_UNIT_S: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_HASH = re.compile(r"\$2[abxy]?\$(\d\d)\$[./A-Za-z0-9]{53}")
_MAX_COST: Final = 18
_HEADER_VALUES: Final = {"X-Frame-Options": ("deny", "sameorigin"), "X-Content-Type-Options": ("nosniff",)}


class TlsServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Server certificate and what is asked of clients; empty text where a key is not given."""

    cert: str = ""
    key: str = ""
    client_ca: str = ""
    cert_file: str = ""
    key_file: str = ""
    client_ca_file: str = ""
    client_auth_type: ClientAuth = ""
    client_allowed_sans: tuple[str, ...] = ()
    min_version: TlsVersion = "TLS12"
    max_version: TlsVersion = "TLS13"
    cipher_suites: tuple[str, ...] = ()
    prefer_server_cipher_suites: bool = True
    curve_preferences: tuple[Curve, ...] = ()

    def enabled(self) -> bool:
        """Return whether TLS is asked for at all."""
        given = (self.cert, self.cert_file, self.key, self.key_file, self.client_ca, self.client_ca_file)
        return any(given) or bool(self.client_auth_type)


Headers = Mapping[
    Literal[
        "Content-Security-Policy",
        "X-Frame-Options",
        "X-Content-Type-Options",
        "X-XSS-Protection",
        "Strict-Transport-Security",
    ],
    Annotated[str, msgspec.Meta(pattern=r"^[\t\x20-\x7e]*$", max_length=4096)],
]


class HttpServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Headers of every answer. ``http2`` is accepted and has no effect: HTTP/1.1 is served."""

    http2: bool = True
    headers: Headers = MappingProxyType({})


class RateLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A token bucket over all requests; an interval of 0 means no limit."""

    interval: str = "0"
    burst: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0

    def interval_s(self) -> float:
        """Return the time in which one more request becomes allowed, in seconds.

        Raises:
            ValueError: ``interval`` is no duration.
        """
        return duration_s(self.interval)


class WebDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole file."""

    tls_server_config: TlsServerConfig = TlsServerConfig()
    http_server_config: HttpServerConfig = HttpServerConfig()
    basic_auth_users: Mapping[str, str] = MappingProxyType({})
    rate_limit: RateLimit = RateLimit()


def duration_s(text: str) -> float:
    """Return a duration as ``1.5s``, ``300ms`` or ``1m30s`` in seconds.

    Raises:
        ValueError: ``text`` is none.
    """
    if text == "0":
        return 0.0
    if not text or _DURATION.sub("", text):
        raise ValueError(f"{text!r} is no duration; right would be `1s`, `300ms` or `1m30s`")
    return sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION.findall(text))


def read_document(path: Path) -> WebDocument:
    """Return the web configuration in the file ``path``.

    Raises:
        WebConfigError: it cannot be read or decoded; holds every fault found, each with its place.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise WebConfigError([f"{path}: cannot be read: {error.strerror}; {_WANTED}"]) from error
    if len(text) > _MAX_FILE_BYTES:
        raise WebConfigError([f"{path}: larger than {_MAX_FILE_BYTES} bytes; {_WANTED}"])
    return decode_document(text, str(path))


def decode_document(text: bytes, place: str) -> WebDocument:
    """Return the web configuration that ``text`` holds; ``place`` names it in faults.

    Raises:
        WebConfigError: it is empty, no YAML, or not of the documented form.
    """
    try:
        tree = yaml.load(text, _StrictLoader)  # noqa: S506 - builds plain text, lists and mappings only
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise WebConfigError([f"{place}: no YAML: {_without_text(error)}"]) from error
    if tree in (None, ""):  # what a full disk or a write under way leaves must not open the page to everybody
        raise WebConfigError([f"{place}: is empty; right would be `{{}}` to ask for neither TLS nor users"])
    if unknown := [f"{place}: {fault}" for fault in _unknown_keys(tree, WebDocument, "")]:
        raise WebConfigError(unknown)
    try:
        document = msgspec.convert(tree, WebDocument, strict=False)
    except (msgspec.ValidationError, RecursionError) as error:
        raise WebConfigError([f"{place}: {str(error).replace('`$.', '`')}"]) from error
    if faults := [f"{place}: {fault}" for fault in _faults(document)]:
        raise WebConfigError(faults)
    return document


def _without_text(error: Exception) -> str:
    """Return what is wrong and where, without the line itself: it may hold a secret."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"{error.problem} (line {mark.line + 1}, column {mark.column + 1})"
    return " ".join(str(error).split())


class _StrictLoader(yaml.BaseLoader):
    """Every scalar is text, a key may appear once, and there are no aliases to multiply."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "aliases are not accepted", mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        mapping = super().construct_mapping(node, deep)
        if len(mapping) != len(node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key appears twice", node.start_mark)
        return mapping


def _unknown_keys(tree: object, kind: type[msgspec.Struct], place: str) -> Iterator[str]:
    """Yield one fault for each key that ``kind`` does not have, with the nearest that it has."""
    if not isinstance(tree, dict):
        return
    known = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in tree.items():
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            meant = near[0] if near else ", ".join(sorted(known))
            yield f"unknown key `{place}{key}`; right would be `{meant}`"
        elif isinstance(known[key], type) and issubclass(known[key], msgspec.Struct):
            yield from _unknown_keys(value, known[key], f"{place}{key}.")


def _faults(document: WebDocument) -> Iterator[str]:
    for user, secret in document.basic_auth_users.items():
        match = _HASH.fullmatch(secret)
        if not match or not 4 <= int(match[1]) <= _MAX_COST:
            wanted = f'a bcrypt hash of cost 4 to {_MAX_COST}, as `htpasswd -nBC 10 ""` prints it'
            yield f"basic_auth_users.{user}: the value is not {wanted}"
        if ":" in user or not user:
            yield f"basic_auth_users: {user!r} cannot be a user name: it is empty or has a colon"
    headers: dict[str, str] = dict(document.http_server_config.headers.items())
    for name, right in _HEADER_VALUES.items():
        if headers.get(name, "").lower() not in ("", *right):
            yield f"http_server_config.headers.{name}: {headers[name]!r}; right would be {' or '.join(right)}"
    try:
        document.rate_limit.interval_s()
    except ValueError as error:
        yield f"rate_limit.interval: {error}"
