"""Tests of agent.verdicts.status_client, and of the command that uses it, against servers on loopback."""

import base64
import http.server
import os
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.config.settings import Settings, WebSettings
from agent.errors import ConfigError
from agent.invocation import Invocation
from agent.verdicts.check import check
from agent.verdicts.status_client import PATH, NoAnswerError, fetch, url_of
from exporters.status import encode_status, status_of
from tests.support.snapshots import idle_node, mixed_node

HEALTHY = encode_status(status_of(idle_node(), version="1"))
TROUBLED = encode_status(status_of(mixed_node(), version="1"))


class _UnixServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True

    def get_request(self) -> tuple[object, object]:  # type: ignore[override]
        """Name the peer, which a Unix socket does not."""
        request, _ = super().get_request()
        return request, ("unix", 0)


@contextmanager
def serving(body: bytes, code: int = 200, user: str = "", unix: Path | None = None) -> Iterator[str]:
    """Serve ``body`` at the agent's path; yield the URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = "Basic " + base64.b64encode(user.encode()).decode()
            refused = user and self.headers.get("Authorization") != wanted
            status = 401 if refused else code if self.path == PATH else 404
            self.send_response(status)
            self.end_headers()
            if status == 200:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the server's name for it
            pass

    server = _UnixServer(str(unix), Handler) if unix else http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"unix:{unix}" if unix else f"http://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("listen", "url"),
    [
        (":9838", "http://127.0.0.1:9838"),
        ("9838", "http://127.0.0.1:9838"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234"),
        ("[::]:1234", "http://[::1]:1234"),
        ("[fe80::1]:1234", "http://[fe80::1]:1234"),
        ("localhost:1234", "http://localhost:1234"),
        ("unix:/run/heatsoak.sock", "unix:/run/heatsoak.sock"),
    ],
)
def test_the_agent_is_found_by_where_it_listens(listen: str, url: str) -> None:
    """Every form of an address leads to this machine."""
    assert url_of(Settings(web=WebSettings(listen=(listen,)))) == url


def test_a_port_that_the_kernel_chose_must_be_named() -> None:
    """Nobody can guess it."""
    with pytest.raises(ConfigError, match="--url"):
        url_of(Settings(web=WebSettings(listen=("127.0.0.1:0",))))


def test_a_running_agent_is_understood() -> None:
    """The exporter's own JSON, over HTTP."""
    with serving(TROUBLED) as url:
        status = fetch(url, 5.0)

    assert [card.state for card in status.cards][4:7] == ["ok", "degraded", "lost"]


def test_a_unix_socket_serves_as_well(tmp_path: Path) -> None:
    """As the configuration may say."""
    with serving(HEALTHY, unix=tmp_path / "s") as url:
        assert fetch(url, 5.0).cards[0].state == "ok"


def test_user_and_password_may_stand_in_the_url() -> None:
    """They are sent, and never shown."""
    with serving(HEALTHY, user="nagios:p@ss/word") as url:
        assert fetch(url.replace("//", "//nagios:p%40ss%2Fword@"), 5.0).cards[0].state == "ok"
        with pytest.raises(NoAnswerError, match="401") as refused:
            fetch(url.replace("//", "//nagios:wrong@"), 5.0)

    assert "wrong" not in str(refused.value)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"version": 1}', b'{"version": 1, "node": {"state": "odd"}, "cards": []}']
)
def test_what_is_no_agent_is_told(body: bytes) -> None:
    """Another server on that port."""
    with serving(body) as url, pytest.raises(NoAnswerError, match="no agent of this version"):
        fetch(url, 5.0)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "unix:/nowhere/socket"])
def test_no_answer_says_where_nobody_answered(url: str) -> None:
    """A closed port, a missing socket."""
    with pytest.raises(NoAnswerError, match="no agent answers at"):
        fetch(url, 0.5)


@pytest.mark.parametrize(
    "url",
    [
        *("banana", "", "ftp://127.0.0.1", "127.0.0.1:9838", "http://", "http:///x", "http://[::1", "http://host:port"),
        *("http://host:0", "http://host:70000", "http://a b/", "http://a\x01b", "unix:", "unix:relative", "http:/host"),
        *("http:host:9838", "https://nagios:secret@", "http://<host>"),
    ],
)
def test_what_is_no_url_is_wrong_usage(url: str) -> None:
    """It is not the agent that is missing: one line with what is wrong and an example, never a password."""
    with pytest.raises(ConfigError, match="right would be `http://127") as told:
        fetch(url, 0.5)
    assert told.value.exit_code == 2
    assert len(told.value.faults) == 1
    assert "secret" not in str(told.value)


@given(st.text(max_size=40).map("http://127.0.0.1:{}".format) | st.text(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_url_or_wrong_usage(url: str) -> None:
    """Never a traceback."""
    with pytest.raises((ConfigError, NoAnswerError)) as told:
        fetch(url, 0.001)
    assert "\n" not in str(told.value)


def test_certificates_to_trust_must_be_some_and_be_of_use(tmp_path: Path) -> None:
    """An option that is ignored would leave someone believing that it was heeded."""
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(ConfigError, match="right would be a file of certificates in PEM form"):
        fetch("https://127.0.0.1:1", 0.5, tmp_path / "ca")
    for url in ("http://127.0.0.1:1", "unix:/run/x"):
        with pytest.raises(ConfigError, match="not spoken to by TLS"):
            fetch(url, 0.5, tmp_path / "ca")


def test_a_server_error_is_no_answer() -> None:
    """With its code."""
    with serving(b"", code=503) as url, pytest.raises(NoAnswerError, match="HTTP 503"):
        fetch(url, 5.0)


def run(*arguments: str, config: Path | None = None) -> Result:
    """Run the command."""
    invocation = Invocation(environ={}, uid=os.geteuid(), config_path=str(config) if config else None)
    return CliRunner().invoke(check, list(arguments), obj=invocation, standalone_mode=False)


@pytest.mark.parametrize(
    ("style", "body", "code", "begins"),
    [
        ((), HEALTHY, 0, "GPU 0 NVIDIA H200"),
        ((), TROUBLED, 10, "GPU 0 NVIDIA H200"),
        (("--nagios",), HEALTHY, 0, "HEATSOAK OK - 1 cards ok | cards=1"),
        (("--nagios",), TROUBLED, 2, "HEATSOAK CRITICAL - "),
        (("--npd",), HEALTHY, 0, "1 cards ok"),
        (("--npd",), TROUBLED, 1, "GPU 6 lost"),
    ],
)
def test_the_command_prints_and_returns_its_code(style: tuple[str, ...], body: bytes, code: int, begins: str) -> None:
    """In each of its styles."""
    with serving(body) as url:
        result = run("--url", url, *style)

    assert result.return_value == code
    assert result.output.startswith(begins)


def test_the_command_asks_the_address_of_the_configuration(tmp_path: Path) -> None:
    """Without a URL."""
    config = tmp_path / "heatsoak.toml"
    with serving(HEALTHY) as url:
        config.write_text(f'[web]\nlisten = ["{url.removeprefix("http://")}"]\n')
        result = run(config=config)

    assert (result.return_value, result.output) == (0, "GPU 0 NVIDIA H200 0000:1b:00.0: ok\n")


def test_without_an_agent_each_style_says_so() -> None:
    """One clear line; the plain style leaves code and line to the command line's own handling of errors."""
    nagios, npd, plain = (run("--url", "http://127.0.0.1:1", *style) for style in (("--nagios",), ("--npd",), ()))

    assert (nagios.return_value, npd.return_value) == (3, 2)
    assert nagios.output.startswith("HEATSOAK UNKNOWN - no agent answers at http://127.0.0.1:1")
    assert npd.output == "no agent answers\n"
    assert isinstance(plain.exception, NoAnswerError)
    assert plain.exception.exit_code == 11


def test_wrong_usage_is_unknown_to_monitors_and_2_to_people() -> None:
    """2 would be critical to Nagios: nothing is known of the cards."""
    nagios, npd, plain = (run("--url", "banana", *style) for style in (("--nagios",), ("--npd",), ()))
    assert (nagios.return_value, npd.return_value) == (3, 2)
    assert nagios.output.startswith("HEATSOAK UNKNOWN - 'banana' is no URL")
    assert npd.output == "wrong URL or configuration\n"
    assert isinstance(plain.exception, ConfigError)


@pytest.mark.parametrize(
    "arguments", [("--nagios", "--npd"), ("--nagios", "--allow-unknown"), ("--npd", "--allow-unknown")]
)
def test_options_without_effect_are_refused(arguments: tuple[str, ...]) -> None:
    """Two styles at once, a code that the style does not use."""
    result = run("--url", "http://127.0.0.1:1", *arguments)
    assert isinstance(result.exception, click.UsageError)
    assert arguments[1] in str(result.exception.message)
