"""The web configuration's YAML: what is understood, what is refused, and where the fault is."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.errors import WebConfigError
from exporters.web.schema import WebDocument, decode_document, duration_s, read_document

HASH = "$2y$10$X0h1gDsPszWURQaxFh.zoubFi6DXncSjhoQNJgRrnGs7EsimhC7zG"
FULL = f"""
tls_server_config:
  cert_file: server.crt
  key_file: server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example, 10.0.0.7]
  min_version: TLS12
  max_version: TLS13
  cipher_suites:
    - TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
  prefer_server_cipher_suites: false
  curve_preferences: [X25519, CurveP256]
http_server_config:
  http2: true
  headers:
    Strict-Transport-Security: max-age=31536000
    X-Frame-Options: deny
    X-Content-Type-Options: nosniff
    X-XSS-Protection: "1"
    Content-Security-Policy: default-src 'self'
basic_auth_users:
  alice: {HASH}
  yes: {HASH}
  "1": {HASH}
rate_limit:
  interval: 1s
  burst: 20
"""


def fault_of(text: str) -> str:
    """Return what is said of a configuration that cannot be used."""
    with pytest.raises(WebConfigError) as caught:
        decode_document(text.encode(), "web.yml")
    assert all(fault.startswith("web.yml: ") for fault in caught.value.faults)
    return str(caught.value)


def test_every_documented_key_is_understood() -> None:
    """The exporter-toolkit's whole schema."""
    document = decode_document(FULL.encode(), "web.yml")
    assert document.tls_server_config.client_allowed_sans == ("prometheus.example", "10.0.0.7")
    assert document.tls_server_config.prefer_server_cipher_suites is False
    assert document.http_server_config.headers["X-XSS-Protection"] == "1"
    assert list(document.basic_auth_users) == ["alice", "yes", "1"]
    assert document.rate_limit.interval_s() == 1.0
    assert document.tls_server_config.enabled()


def test_an_empty_mapping_asks_for_nothing() -> None:
    """Plain HTTP, open to all."""
    document = decode_document(b"{}", "web.yml")
    assert document == WebDocument()
    assert not document.tls_server_config.enabled()


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n"])
def test_an_empty_file_opens_nothing(text: str) -> None:
    """A full disk leaves one behind, and so does for a moment whoever writes it anew."""
    assert fault_of(text) == "web.yml: is empty; right would be `{}` to ask for neither TLS nor users"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tls_server_confg: {}", "unknown key `tls_server_confg`; right would be `tls_server_config`"),
        ("tls_server_config: {cert_fil: x}", "unknown key `tls_server_config.cert_fil`; right would be `cert_file`"),
        ("zzz: 1", "right would be `basic_auth_users, http_server_config, rate_limit, tls_server_config`"),
        ("tls_server_config: {min_version: SSL3}", "`tls_server_config.min_version`"),
        ("tls_server_config: {client_auth_type: Maybe}", "`tls_server_config.client_auth_type`"),
        ("tls_server_config: {curve_preferences: [Curve1]}", "`tls_server_config.curve_preferences[0]`"),
        ("tls_server_config: text", "`tls_server_config`"),
        ("http_server_config: {http2: perhaps}", "`http_server_config.http2`"),
        ("http_server_config: {headers: {Server: x}}", "Invalid enum value 'Server'"),
        ('http_server_config: {headers: {X-XSS-Protection: "a\\nb"}}', "`http_server_config.headers"),
        ("http_server_config: {headers: {X-Frame-Options: no}}", "right would be deny or sameorigin"),
        ("http_server_config: {headers: {X-Content-Type-Options: sniff}}", "right would be nosniff"),
        ("basic_auth_users: {alice: secret}", "basic_auth_users.alice: the value is not a bcrypt hash"),
        ("basic_auth_users: {alice: $2b$31$" + "a" * 53 + "}", "cost 4 to 18"),
        ("basic_auth_users: {'a:b': " + HASH + "}", "'a:b' cannot be a user name"),
        ("basic_auth_users: [alice]", "`basic_auth_users`"),
        ("rate_limit: {interval: fast}", "rate_limit.interval: 'fast' is no duration"),
        ("rate_limit: {burst: -1}", "`rate_limit.burst`"),
        ("- a", "Expected `object`, got `array`"),
        ("just text", "Expected `object`, got `str`"),
        ("a: 1\na: 2", "a key appears twice"),
        ("a: &x [1]\nb: *x", "aliases are not accepted"),
        ("a: 1\nb: [", "no YAML: expected the node content, but found '<stream end>' (line 2, column 5)"),
        ("a: \x00", "no YAML"),
        ("[" * 5000, "no YAML"),
        ("{[1]: 2}", "no YAML"),
    ],
)
def test_a_fault_is_told_with_its_place_and_what_would_be_right(text: str, said: str) -> None:
    """Nothing is guessed, nothing unknown is passed over."""
    assert said in fault_of(text)


def test_a_secret_is_never_repeated_in_a_fault() -> None:
    """A password written in the place of its hash does not reach the log."""
    assert "hunter2" not in fault_of("basic_auth_users: {alice: hunter2}")
    assert "hunter2" not in fault_of("basic_auth_users: {alice: hunter2]")


def test_all_unknown_keys_are_told_at_once() -> None:
    """Whoever mends the file mends it once."""
    with pytest.raises(WebConfigError) as caught:
        decode_document(b"a: 1\ntls_server_config: {b: 2}\n", "web.yml")
    assert len(caught.value.faults) == 2


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0.0), ("1s", 1.0), ("300ms", 0.3), ("1m30s", 90.0), ("1.5h", 5400.0), ("5us", 5e-6)]
)
def test_durations_are_those_of_go(text: str, seconds: float) -> None:
    """As the toolkit reads them."""
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "1", "s", "-1s", "1 s", "1y"])
def test_other_durations_are_refused(text: str) -> None:
    """With the accepted form."""
    with pytest.raises(ValueError, match="right would be"):
        duration_s(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing and far too large."""
    with pytest.raises(WebConfigError, match=r"missing\.yml: cannot be read: No such file"):
        read_document(tmp_path / "missing.yml")
    large = tmp_path / "large.yml"
    large.write_bytes(b"#" * (2**20 + 1))
    with pytest.raises(WebConfigError, match="larger than"):
        read_document(large)


def is_decided(text: bytes) -> bool:
    """Return whether ``text`` is a document or has a fault to name."""
    try:
        return isinstance(decode_document(text, "web.yml"), WebDocument)
    except WebConfigError as error:
        return bool(error.faults)


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_whatever_the_bytes_it_is_a_document_or_a_fault(text: bytes) -> None:
    """Nothing else is ever raised."""
    assert is_decided(text)


_KEYS = st.sampled_from(["tls_server_config", "cert", "basic_auth_users", "headers", "rate_limit", "burst", "x"])
_TREES = st.recursive(
    st.text(max_size=5) | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=3),
    max_leaves=10,
)


@given(_TREES)
def test_whatever_the_tree_it_is_a_document_or_a_fault(tree: object) -> None:
    """JSON is YAML: trees of the right words in the wrong places."""
    assert is_decided(repr(tree).encode("utf-8", "replace"))
