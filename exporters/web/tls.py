"""From a TLS section of the web configuration to an SSLContext."""

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from exporters.errors import WebConfigError
from exporters.web.schema import TLS_VERSIONS, TlsServerConfig

_VERSIONS: Final = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CURVES: Final = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}
_TLS13_SUITES: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_SUITES: Final = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
_VERIFY: Final = {
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
}
_UNVERIFIED: Final = ("RequireAnyClientCert", "RequireClientCert")


def build_context(config: TlsServerConfig, base: Path, place: str) -> ssl.SSLContext:
    """Return the context that ``config`` describes; relative paths start at ``base``.

    ``RequestClientCert`` asks for nothing, since a certificate that is not verified changes nothing here.
    TLS 1.0 and 1.1 are never spoken: as lowest version they mean TLS 1.2.

    Raises:
        WebConfigError: a fault in ``config`` or in a file it names; ``place`` begins each line.
    """
    if faults := [f"{place}: tls_server_config.{fault}" for fault in _faults(config)]:
        raise WebConfigError(faults)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _VERSIONS.get(config.min_version, ssl.TLSVersion.TLSv1_2)
    context.maximum_version = _VERSIONS[config.max_version]
    context.set_alpn_protocols(["http/1.1"])
    if config.prefer_server_cipher_suites:
        context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    else:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    suites = [_SUITES[name] for name in config.cipher_suites if name not in _TLS13_SUITES]
    if suites:
        context.set_ciphers(":".join(suites))
    if len(config.curve_preferences) == 1:
        context.set_ecdh_curve(_CURVES[config.curve_preferences[0]])
    with _blamed(place, "cert and key", f"{config.cert_file or 'inline'}, {config.key_file or 'inline'}"):
        _load_pair(context, config, base)
    with _blamed(place, "client_ca", config.client_ca_file or "inline"):
        _load_client_ca(context, config, base)
    return context


def names_in(certificate: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the subject alternative names (DNS, IP, e-mail, URI) of a peer's verified certificate."""
    entries = (certificate or {}).get("subjectAltName", ())
    return frozenset(value for kind, value in entries if kind in ("DNS", "IP Address", "email", "URI"))


def _faults(config: TlsServerConfig) -> Iterator[str]:
    for kind in ("cert", "key", "client_ca"):
        inline, path = getattr(config, kind), getattr(config, f"{kind}_file")
        if inline and path:
            yield f"{kind}: given twice, as {kind} and as {kind}_file"
        if not inline and not path and kind != "client_ca":
            yield f"{kind}: missing; right would be {kind}_file or {kind}"
    if config.client_auth_type in _UNVERIFIED:
        yield (
            f"client_auth_type: {config.client_auth_type} lets every self-made certificate in and is not served; "
            "right would be RequireAndVerifyClientCert"
        )
    has_ca = bool(config.client_ca or config.client_ca_file)
    if config.client_auth_type in _VERIFY and not has_ca:
        yield f"client_ca_file: missing, but client_auth_type is {config.client_auth_type}"
    if has_ca and config.client_auth_type in ("", "NoClientCert"):
        yield "client_auth_type: missing, but a client CA is given; right would be RequireAndVerifyClientCert"
    if config.client_allowed_sans and config.client_auth_type != "RequireAndVerifyClientCert":
        yield "client_allowed_sans: needs client_auth_type RequireAndVerifyClientCert"
    yield from _protocol_faults(config)


def _protocol_faults(config: TlsServerConfig) -> Iterator[str]:
    if config.max_version not in _VERSIONS:
        yield f"max_version: {config.max_version} is not served; right would be TLS12 or TLS13"
    elif TLS_VERSIONS.index(config.min_version) > TLS_VERSIONS.index(config.max_version):
        yield f"min_version: {config.min_version} is above max_version {config.max_version}"
    for name in config.cipher_suites:
        if name not in _SUITES and name not in _TLS13_SUITES:
            yield f"cipher_suites: {name!r} is unknown; right would be one of {', '.join((*_SUITES, *_TLS13_SUITES))}"


@contextmanager
def _blamed(place: str, key: str, value: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # SSLError is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise WebConfigError([f"{place}: tls_server_config: {key} ({value}): {reason}"]) from error


def _load_pair(context: ssl.SSLContext, config: TlsServerConfig, base: Path) -> None:
    with _as_file(config.cert, config.cert_file, base) as cert, _as_file(config.key, config.key_file, base) as key:
        context.load_cert_chain(cert, key, password=_refuse_password)


def _load_client_ca(context: ssl.SSLContext, config: TlsServerConfig, base: Path) -> None:
    if config.client_auth_type not in _VERIFY:
        return
    pem = config.client_ca or (base / config.client_ca_file).read_text(encoding="ascii")
    context.load_verify_locations(cadata=pem)
    context.verify_mode = _VERIFY[config.client_auth_type]


def _refuse_password() -> str:
    """Stand in for the terminal that OpenSSL would ask: an encrypted key is a fault.

    Raises:
        ValueError: always.
    """
    message = "the key is encrypted; right would be one without a passphrase"
    raise ValueError(message)


@contextmanager
def _as_file(text: str, path: str, base: Path) -> Iterator[str]:
    """Give the path of ``path``, or of an anonymous file in memory that holds ``text``."""
    if path:
        yield str(base / path)
        return
    descriptor = os.memfd_create("heatsoak-tls")
    try:
        os.write(descriptor, text.encode())
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
