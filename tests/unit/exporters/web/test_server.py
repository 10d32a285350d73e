"""The whole server over real sockets: crowds, TLS, passwords, Unix sockets, start and stop."""

import asyncio
import socket
import ssl
import threading
import time
from http import HTTPStatus
from pathlib import Path

import bcrypt
import pytest
from structlog.testing import capture_logs

from agent.config.listen import ListenAddress
from exporters.errors import WebConfigError
from exporters.web.config import FixedConfig
from exporters.web.listen import open_listeners
from exporters.web.messages import Request, Response, text_response
from exporters.web.server import WebServer, log_stray
from exporters.web.stats import WebStats
from tests.support.certificates import Pair, make_ca, make_cert
from tests.support.clock import FakeClock
from tests.support.snapshots import idle_node, mixed_node, sixteen_cards
from tests.support.web import LOOPBACK, ask, is_closed, read_answer, running_site, tls_client
from tests.unit.exporters.web.test_auth import basic


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Make a certificate authority once."""
    return make_ca(tmp_path_factory.mktemp("ca"))


def tls_config(folder: Path, authority: Pair, extra: str = "") -> Path:
    """Write a web configuration with a certificate for localhost beside it."""
    make_cert(folder, authority, "server")
    path = folder / "web.yml"
    path.write_text(f"tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n{extra}")
    return path


def trusting(authority: Pair) -> ssl.SSLContext:
    """Return a client's context that trusts the authority."""
    return ssl.create_default_context(cafile=str(authority.cert))


def test_every_page_is_served_from_the_last_snapshot() -> None:
    """Over one real connection."""
    with running_site(mixed_node()) as site, site.connect() as client:
        assert b"heatsoak_card_state" in ask(client, "/metrics").body
        assert b"GPU 6 lost" in ask(client, "/").body
        assert ask(client, "/api/v1/status?pretty=1").headers["content-type"] == "application/json"
        site.publish(idle_node())
        assert b"Card OK" in ask(client, "/").body


def test_liveness_and_readiness_are_told() -> None:
    """Alive without a snapshot, not ready; both follow."""
    with running_site() as site:
        assert (site.ask("/livez").status, site.ask("/readyz").status) == (200, 503)
        site.publish(idle_node())
        assert site.ask("/readyz").status == 200
        site.trouble = "no tick for 30 s"
        assert site.ask("/livez").status == 503


def test_the_date_is_the_clocks() -> None:
    """Told by the clock that was handed in."""
    with running_site() as site:
        assert site.ask().headers["date"] == "Tue, 14 Nov 2023 22:13:20 GMT"


def test_several_listeners_serve_the_same(tmp_path: Path) -> None:
    """TCP over both families and a Unix socket; all are gone after the stop."""
    path = tmp_path / "web.sock"
    addresses = [ListenAddress(port=0), ListenAddress(path=str(path))]
    with running_site(idle_node(), addresses=addresses) as site:
        assert site.server.addresses == (f"[::]:{site.port}", f"unix:{path}")
        for host in ("127.0.0.1", "::1"):
            with socket.create_connection((host, site.port), 10) as client:
                assert ask(client, "/readyz").status == 200
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            assert ask(client, "/readyz").status == 200
    assert not path.exists()


def test_a_crowd_of_silent_clients_delays_nobody() -> None:
    """Three times as many as there are places: whoever speaks is served, the longest silent ones go."""
    with running_site(sixteen_cards(), max_connections=20) as site:
        silent = [site.connect() for _ in range(60)]
        try:
            assert all(site.ask("/metrics").status == 200 for _ in range(10))
            page = site.ask("/metrics").body
            assert is_closed(silent[0])
        finally:
            for client in silent:
                client.close()
    assert b"heatsoak_web_connections 20.0" in page
    crowded = next(line for line in page.splitlines() if b'cut_total{reason="crowded"}' in line)
    assert float(crowded.split()[1]) >= 40


def test_many_scrapers_at_once_are_all_served() -> None:
    """50 in parallel, a few scrapes each."""
    failures: list[object] = []

    def scrape() -> None:
        try:
            with site.connect() as client:
                failures.extend(status for _ in range(5) if (status := ask(client, "/metrics").status) != 200)
        except OSError as error:
            failures.append(error)

    with running_site(sixteen_cards()) as site:
        threads = [threading.Thread(target=scrape) for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_serving_takes_one_thread_however_many_come() -> None:
    """Clients cost memory, not threads."""
    with running_site(idle_node()) as site:
        before = threading.active_count()
        clients = [site.connect() for _ in range(30)]
        for client in clients:
            ask(client)
        assert threading.active_count() == before
        for client in clients:
            client.close()


def test_tls_is_served_and_a_silent_handshake_delays_nobody(tmp_path: Path, authority: Pair) -> None:
    """A client that connects and says nothing holds up no handshake."""
    config = tls_config(tmp_path, authority)
    with (
        running_site(idle_node(), config_file=str(config)) as site,
        site.connect(),
        tls_client(site, trusting(authority)) as client,
    ):
        assert ask(client, "/metrics").status == 200
        assert ask(client, "/readyz").status == 200
        assert client.version() == "TLSv1.3"


def test_plain_http_to_a_tls_port_costs_only_itself(tmp_path: Path, authority: Pair) -> None:
    """Counted as a failed handshake."""
    config = tls_config(tmp_path, authority)
    with running_site(idle_node(), config_file=str(config)) as site:
        with site.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert is_closed(client)
        with tls_client(site, trusting(authority)) as client:
            page = ask(client, "/metrics").body
    assert b'heatsoak_web_connections_cut_total{reason="tls_failed"} 1.0' in page


def test_a_silent_handshake_is_cut_off(tmp_path: Path, authority: Pair) -> None:
    """It has the same time as a request."""
    config = tls_config(tmp_path, authority)
    with running_site(config_file=str(config), timeout_s=0.3) as site, site.connect() as client:
        assert is_closed(client)


def test_a_renewed_certificate_is_served_without_a_restart(tmp_path: Path, authority: Pair) -> None:
    """New connections see it; one that was open goes on."""
    config = tls_config(tmp_path, authority)

    def serial(client: ssl.SSLSocket) -> str:
        certificate = client.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])

    with running_site(idle_node(), config_file=str(config)) as site, tls_client(site, trusting(authority)) as old:
        make_cert(tmp_path, authority, "server")
        site.clock.advance(1.0)
        with tls_client(site, trusting(authority)) as new:
            assert serial(new) != serial(old)
            assert ask(new).status == 200
        assert ask(old).status == 200


def test_clients_without_an_allowed_name_are_not_spoken_to(tmp_path: Path, authority: Pair) -> None:
    """A verified certificate is not enough where names are listed."""
    (tmp_path / "ca.crt").write_bytes(authority.cert.read_bytes())
    extra = (
        "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: ca.crt\n"
        "  client_allowed_sans: [prometheus.example]\n"
    )
    config = tls_config(tmp_path, authority, extra)
    welcome = make_cert(tmp_path, authority, "welcome", "DNS:prometheus.example")
    other = make_cert(tmp_path, authority, "other", "DNS:else.example")
    with running_site(idle_node(), config_file=str(config)) as site:
        for pair, allowed in ((welcome, True), (other, False)):
            context = trusting(authority)
            context.load_cert_chain(pair.cert, pair.key)
            with tls_client(site, context) as client:
                if allowed:
                    assert ask(client).status == 200
                else:
                    with pytest.raises(OSError, match=r"."):
                        ask(client)


def test_users_are_asked_for_their_password_and_a_reload_changes_it(tmp_path: Path) -> None:
    """On every path; the file on disk decides, a second later at most, for open connections too."""
    hashed = bcrypt.hashpw(b"wonderland", bcrypt.gensalt(4)).decode()
    config = tmp_path / "web.yml"
    config.write_text(f"basic_auth_users: {{alice: {hashed}}}")
    with running_site(idle_node(), config_file=str(config)) as site, site.connect() as client:
        assert ask(client, "/livez").status == 401
        assert ask(client, "/livez", authorization=basic("alice", "wonderland")).status == 200
        config.write_text(f"basic_auth_users: {{bob: {hashed}}}")
        site.clock.advance(1.0)
        assert ask(client, "/livez", authorization=basic("alice", "wonderland")).status == 401
        page = ask(client, "/metrics", authorization=basic("bob", "wonderland")).body
        assert b"heatsoak_web_config_reload_success 1.0" in page
        config.write_text("basic_auth_users: {bob: plain}")
        site.clock.advance(1.0)
        site.publish(idle_node())
        page = ask(client, "/metrics", authorization=basic("bob", "wonderland")).body
        assert b"heatsoak_web_config_reload_success 0.0" in page


def test_a_broken_web_configuration_at_the_start_is_a_fault(tmp_path: Path) -> None:
    """Before anything is served."""
    (tmp_path / "web.yml").write_text("basic_auth_users: {alice: plain}")
    (listener,) = open_listeners([LOOPBACK])
    with listener, pytest.raises(WebConfigError), running_site(listeners=[listener], config_file=f"{tmp_path}/web.yml"):
        pass


def test_nothing_is_logged_about_clients_that_leave() -> None:
    """Resets, half requests and nonsense are told at debug level only."""
    with capture_logs() as logs, running_site(idle_node()) as site:
        for said in (b"", b"GET /met", b"nonsense\r\n\r\n"):
            with site.connect() as client:
                client.sendall(said)
        assert site.ask().status == 200
    assert {entry["log_level"] for entry in logs} <= {"debug", "info"}
    assert [entry["event"] for entry in logs if entry["log_level"] == "info"] == ["web_listening"]


def test_a_listener_that_fails_is_told_once_and_costs_no_other() -> None:
    """The kernel takes one socket away; the other goes on."""
    with capture_logs() as logs, running_site(idle_node(), addresses=[LOOPBACK, LOOPBACK]) as site:
        site.listeners[1].shutdown(socket.SHUT_RDWR)
        end_s = time.monotonic() + 0.35
        while time.monotonic() < end_s:
            assert site.ask().status == 200
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["accept_failed"]


def test_a_fault_of_our_own_costs_one_connection_and_is_told() -> None:
    """Whatever breaks in serving one client, the next is served."""
    (listener,) = open_listeners([LOOPBACK])
    port = listener.getsockname()[1]

    async def broken(request: Request) -> Response:
        if request.path == "/broken":
            raise ZeroDivisionError
        return text_response(HTTPStatus.OK, "fine")

    server = WebServer(broken, [listener], config=FixedConfig(), stats=WebStats(), wall_s=FakeClock().wall_s)
    with capture_logs() as logs:
        server.start()
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            client.sendall(b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
            assert is_closed(client)
        with socket.create_connection(("127.0.0.1", port), 10) as client:
            assert ask(client).status == 200
        server.stop()
    assert [entry["error"] for entry in logs if entry["event"] == "web_error"] == ["ZeroDivisionError()"]


def test_what_the_event_loop_complains_of_reaches_the_log() -> None:
    """A client's trouble at debug level, anything else as an error."""
    loop = asyncio.new_event_loop()
    with capture_logs() as logs:
        log_stray(loop, {"message": "reset", "exception": ConnectionResetError("gone")})
        log_stray(loop, {"message": "odd"})
    loop.close()
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("connection_error", "debug"),
        ("web_error", "error"),
    ]


def test_stopping_lets_an_answer_under_way_end_and_waits_for_nobody() -> None:
    """Idle clients are dropped, the port is free, a second stop is no fault."""
    with running_site(idle_node()) as site:
        idle, port = site.connect(), site.port
        client = site.connect()
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(client).status == 200
        site.server.stop()
        assert is_closed(idle)
        assert is_closed(client)
        site.server.stop()
        for each in (idle, client):
            each.close()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_server_that_never_started_lets_go_of_its_listeners() -> None:
    """Stopping before the start closes them."""
    (listener,) = open_listeners([LOOPBACK])
    with running_site(listeners=[listener]) as site:
        pass
    assert listener.fileno() == -1
    site.server.stop()
