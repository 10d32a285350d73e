"""From a TLS section to a context: real certificates, every client auth type, every fault."""

import socket
import ssl
import subprocess
import threading
from pathlib import Path

import msgspec
import pytest

from exporters.errors import WebConfigError
from exporters.web.schema import TlsServerConfig
from exporters.web.tls import build_context, names_in
from tests.support.certificates import Pair, make_ca, make_cert


class Files(msgspec.Struct, frozen=True):
    """Certificates for a server, for a known and for an unknown client, in one folder."""

    folder: Path
    ca: Pair
    client: Pair
    stranger: Pair


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Make them once."""
    folder = tmp_path_factory.mktemp("tls")
    ca = make_ca(folder)
    make_cert(folder, ca, "server")
    client = make_cert(folder, ca, "client", "DNS:prometheus.example,IP:10.0.0.7,URI:spiffe://x/y,email:a@b.c")
    return Files(folder, ca, client, make_cert(folder, make_ca(folder, "other"), "stranger"))


PAIR = TlsServerConfig(cert_file="server.crt", key_file="server.key")


def with_client_auth(auth_type: str) -> TlsServerConfig:
    """Return a configuration that asks clients as ``auth_type`` says."""
    return msgspec.structs.replace(PAIR, client_auth_type=auth_type, client_ca_file="ca.crt")


def shake_hands(
    server: ssl.SSLContext, files: Files, client_cert: Pair | None = None, version: ssl.TLSVersion | None = None
) -> tuple[str, frozenset[str]]:
    """Return the version spoken and the names the server sees in the client's certificate.

    Raises:
        OSError: the handshake fails on either side.
    """
    context = ssl.create_default_context(cafile=str(files.ca.cert))
    if client_cert is not None:
        context.load_cert_chain(client_cert.cert, client_cert.key)
    if version is not None:
        context.minimum_version = context.maximum_version = version
    here, there = socket.socketpair()
    seen: list[frozenset[str]] = []

    def serve() -> None:
        try:
            with server.wrap_socket(there, server_side=True) as accepted:
                seen.append(names_in(accepted.getpeercert()))
                accepted.sendall(b".")
        except OSError:
            there.close()

    thread = threading.Thread(target=serve)
    thread.start()
    here.settimeout(10)
    try:
        with context.wrap_socket(here, server_hostname="localhost") as client:
            if not client.recv(1):
                raise ConnectionError(f"the server ended the handshake with {client.cipher()}")
            return client.version() or "", seen[0]
    finally:
        thread.join()


def test_a_certificate_from_files_is_served(files: Files) -> None:
    """Relative paths start at the configuration's folder; TLS 1.3 where both can."""
    context = build_context(PAIR, files.folder, "web.yml")
    assert shake_hands(context, files) == ("TLSv1.3", frozenset())


def test_an_inline_certificate_is_served(files: Files) -> None:
    """PEM text in the configuration itself; the key touches no disk."""
    inline = TlsServerConfig(
        cert=(files.folder / "server.crt").read_text(),
        key=(files.folder / "server.key").read_text(),
        client_ca=files.ca.cert.read_text(),
        client_auth_type="RequireAndVerifyClientCert",
    )
    context = build_context(inline, files.folder, "web.yml")
    assert "prometheus.example" in shake_hands(context, files, files.client)[1]


@pytest.mark.parametrize(
    ("auth_type", "nobody", "known", "stranger"),
    [
        ("VerifyClientCertIfGiven", True, True, False),
        ("RequireAndVerifyClientCert", False, True, False),
        ("RequestClientCert", True, True, True),
    ],
)
def test_clients_are_asked_as_the_type_says(
    files: Files, auth_type: str, nobody: bool, known: bool, stranger: bool
) -> None:
    """Without a certificate, with a known one, with one that nobody signed."""
    context = build_context(with_client_auth(auth_type), files.folder, "web.yml")
    for certificate, welcome in ((None, nobody), (files.client, known), (files.stranger, stranger)):
        if welcome:
            assert shake_hands(context, files, certificate)[0]
        else:
            with pytest.raises(OSError, match=r"."):
                shake_hands(context, files, certificate)


def test_the_names_of_a_verified_client_are_read(files: Files) -> None:
    """DNS, IP, URI and e-mail."""
    context = build_context(with_client_auth("RequireAndVerifyClientCert"), files.folder, "web.yml")
    _, names = shake_hands(context, files, files.client)
    assert names == {"prometheus.example", "10.0.0.7", "spiffe://x/y", "a@b.c"}
    assert names_in(None) == frozenset()


def test_versions_are_bounded(files: Files) -> None:
    """The lowest and the highest count; older than 1.2 means 1.2."""
    newest = msgspec.structs.replace(PAIR, min_version="TLS13")
    with pytest.raises(OSError, match=r"."):
        shake_hands(build_context(newest, files.folder, "web.yml"), files, version=ssl.TLSVersion.TLSv1_2)
    oldest = msgspec.structs.replace(PAIR, min_version="TLS10", max_version="TLS12")
    context = build_context(oldest, files.folder, "web.yml")
    assert shake_hands(context, files)[0] == "TLSv1.2"
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_ciphers_and_curves_are_those_asked_for(files: Files) -> None:
    """Go's names are translated; TLS 1.3's own suites are always on."""
    config = msgspec.structs.replace(
        PAIR,
        max_version="TLS12",
        cipher_suites=("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256"),
        curve_preferences=("CurveP384",),
    )
    context = build_context(config, files.folder, "web.yml")
    old = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"]
    assert old == ["ECDHE-ECDSA-AES256-GCM-SHA384"]
    assert shake_hands(context, files)[0] == "TLSv1.2"


@pytest.mark.parametrize("preferred", [True, False])
def test_whose_preference_counts_is_configured(files: Files, preferred: bool) -> None:
    """The server's by default."""
    config = msgspec.structs.replace(PAIR, prefer_server_cipher_suites=preferred)
    context = build_context(config, files.folder, "web.yml")
    assert bool(context.options & ssl.OP_CIPHER_SERVER_PREFERENCE) is preferred


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"key_file": ""}, "key: missing; right would be key_file or key"),
        ({"cert_file": ""}, "cert: missing"),
        ({"cert": "x"}, "cert: given twice"),
        ({"client_auth_type": "RequireAnyClientCert"}, "is not served; right would be RequireAndVerifyClientCert"),
        ({"client_auth_type": "RequireAndVerifyClientCert"}, "client_ca_file: missing"),
        ({"client_ca_file": "ca.crt"}, "client_auth_type: missing"),
        ({"client_allowed_sans": ("a",)}, "client_allowed_sans: needs client_auth_type"),
        ({"max_version": "TLS11"}, "max_version: TLS11 is not served"),
        ({"min_version": "TLS13", "max_version": "TLS12"}, "min_version: TLS13 is above max_version TLS12"),
        ({"cipher_suites": ("RC4",)}, "cipher_suites: 'RC4' is unknown"),
        ({"cert_file": "missing.crt"}, "cert and key (missing.crt, server.key): No such file"),
        ({"key_file": "client.key"}, "cert and key (server.crt, client.key):"),
        ({"cert_file": "server.ext"}, "cert and key (server.ext, server.key):"),
        (
            {"client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": "gone.crt"},
            "client_ca (gone.crt): No such",
        ),
        ({"client_auth_type": "VerifyClientCertIfGiven", "client_ca_file": "server.ext"}, "client_ca (server.ext):"),
    ],
)
def test_a_fault_is_told_with_its_key(files: Files, changes: dict[str, str], said: str) -> None:
    """Before anything is served."""
    config = msgspec.structs.replace(PAIR, **changes)
    with pytest.raises(WebConfigError) as caught:
        build_context(config, files.folder, "web.yml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("web.yml: tls_server_config")


def test_an_encrypted_key_is_a_fault_and_asks_nobody(files: Files) -> None:
    """No prompt on a terminal that may not exist."""
    encrypted = files.folder / "encrypted.key"
    if not encrypted.exists():
        key = ssl_encrypted(files.folder / "server.key")
        encrypted.write_bytes(key)
    config = msgspec.structs.replace(PAIR, key_file="encrypted.key")
    with pytest.raises(WebConfigError, match="the key is encrypted"):
        build_context(config, files.folder, "web.yml")


def ssl_encrypted(key: Path) -> bytes:
    """Return a key with a passphrase on it."""
    command = ["openssl", "pkey", "-in", str(key), "-aes128", "-passout", "pass:secret"]
    return subprocess.run(command, check=True, capture_output=True).stdout
