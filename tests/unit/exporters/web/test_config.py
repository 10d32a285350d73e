"""The web configuration in use: read, watched, renewed, and kept where the new one is broken."""

import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from exporters.errors import WebConfigError
from exporters.web.config import FixedConfig, WatchedConfig, WebConfig
from exporters.web.stats import WebStats
from tests.support.certificates import make_ca, make_cert
from tests.support.clock import FakeClock
from tests.unit.exporters.web.test_schema import HASH

ALICE = f"basic_auth_users: {{alice: {HASH}}}\n"
BOB = f"basic_auth_users: {{bob: {HASH}}}\n"


class Watch:
    """A watched file with its clock and its counters."""

    def __init__(self, path: Path, text: str) -> None:
        path.write_text(text)
        self.path = path
        self.stats, self.clock = WebStats(), FakeClock()
        self.config = WatchedConfig(path, self.stats, self.clock.monotonic_s)

    def later(self, seconds: float = 1.0) -> WebConfig:
        """Return the configuration in use some time later."""
        self.clock.advance(seconds)
        return self.config.current()

    def write(self, text: str) -> None:
        """Put a new file in place of the old one, as editors and secret mounts do."""
        renewed = self.path.with_suffix(".new")
        renewed.write_text(text)
        renewed.replace(self.path)


def test_a_fixed_configuration_is_plain_http_for_all() -> None:
    """What is served where no file is named."""
    config = FixedConfig().current()
    assert (config.tls, config.users, config.headers) == (None, {}, ())
    assert config.allows(None)


def test_allowed_names_are_compared_with_the_certificate() -> None:
    """One that matches is enough; no certificate matches nothing."""
    config = WebConfig(allowed_sans=frozenset({"prometheus.example"}))
    assert config.allows({"subjectAltName": (("DNS", "other"), ("DNS", "prometheus.example"))})
    assert not config.allows({"subjectAltName": (("DNS", "other"), ("dirName", "prometheus.example"))})
    assert not config.allows(None)


def test_a_change_is_taken_over(tmp_path: Path) -> None:
    """At the next look, at most a second later, and said once."""
    watch = Watch(tmp_path / "web.yml", ALICE)
    assert list(watch.later().users) == ["alice"]
    watch.write(BOB)
    assert list(watch.later(0.5).users) == ["alice"]
    with capture_logs() as logs:
        assert list(watch.later(0.5).users) == ["bob"]
        watch.later()
    assert [entry["event"] for entry in logs] == ["web_config_reloaded"]


@pytest.mark.parametrize("broken", ["users: {}", "basic_auth_users: {bob: plain}", "a: [", ""])
def test_a_broken_file_keeps_the_old_configuration_and_says_so_once(tmp_path: Path, broken: str) -> None:
    """Counted while it lasts; the next good file ends it."""
    watch = Watch(tmp_path / "web.yml", ALICE)
    watch.write(broken)
    with capture_logs() as logs:
        for _ in range(5):
            assert list(watch.later().users) == ["alice"]
    assert [entry["event"] for entry in logs] == ["web_config_kept"]
    assert watch.stats.reload_ok is False
    watch.write(BOB)
    assert list(watch.later().users) == ["bob"]
    assert watch.stats.reload_ok is True


def test_a_file_that_vanishes_keeps_the_configuration(tmp_path: Path) -> None:
    """Until it is back, changed or not."""
    watch = Watch(tmp_path / "web.yml", ALICE)
    watch.path.rename(tmp_path / "away.yml")
    assert list(watch.later().users) == ["alice"]
    assert watch.stats.reload_ok is False
    (tmp_path / "away.yml").rename(watch.path)
    assert list(watch.later().users) == ["alice"]
    assert watch.stats.reload_ok is True


@pytest.mark.parametrize("name", ["web.yml", "server.crt", "ca.crt"])
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path, name: str) -> None:
    """Reading it would wait for ever, and every client with it."""
    ca = make_ca(tmp_path)
    make_cert(tmp_path, ca, "server")
    text = (
        "tls_server_config: {cert_file: server.crt, key_file: server.key, client_ca_file: ca.crt, "
        "client_auth_type: RequireAndVerifyClientCert}"
    )
    watch = Watch(tmp_path / "web.yml", text)
    old = watch.later().tls
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    with capture_logs() as logs:
        assert watch.later().tls is old
    assert [entry["faults"] for entry in logs] == [(f"{tmp_path / name}: must be a regular file",)]


def test_a_broken_file_at_the_start_is_a_fault(tmp_path: Path) -> None:
    """Nothing is served unprotected by mistake."""
    path = tmp_path / "web.yml"
    path.write_text("tls_server_config: {cert_file: missing.crt, key_file: missing.key}")
    with pytest.raises(WebConfigError, match="No such file"):
        WatchedConfig(path, WebStats(), FakeClock().monotonic_s)


def test_renewed_certificates_are_taken_over(tmp_path: Path) -> None:
    """The file that names them need not change; half a change keeps the old pair until the other half is there."""
    ca = make_ca(tmp_path)
    make_cert(tmp_path, ca, "server")
    watch = Watch(tmp_path / "web.yml", "tls_server_config: {cert_file: server.crt, key_file: server.key}")
    old = watch.later().tls
    assert old is not None
    assert watch.later().tls is old
    new = make_cert(tmp_path, ca, "renewed")
    new.cert.replace(tmp_path / "server.crt")
    assert watch.later().tls is old
    assert watch.stats.reload_ok is False
    new.key.replace(tmp_path / "server.key")
    assert watch.later().tls is not old
    assert watch.stats.reload_ok is True


def test_a_change_of_time_alone_is_a_change(tmp_path: Path) -> None:
    """Same size and same file: the time of change decides."""
    watch = Watch(tmp_path / "web.yml", ALICE)
    watch.path.write_text(ALICE.replace("alice", "carol"))
    os.utime(watch.path, ns=(1, 1))
    assert list(watch.later().users) == ["carol"]


def test_headers_left_blank_are_unset(tmp_path: Path) -> None:
    """As the toolkit has it."""
    text = "http_server_config: {headers: {X-Frame-Options: '', X-XSS-Protection: '1'}}"
    assert Watch(tmp_path / "web.yml", text).config.current().headers == (("X-XSS-Protection", "1"),)
