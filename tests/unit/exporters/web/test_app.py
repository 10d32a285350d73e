"""The routes, asked without a network."""

import gzip
import json
from http import HTTPStatus

import pytest

from agent.model.snapshot import Snapshot
from exporters.page import StatusPage
from exporters.prometheus import MetricsPage
from exporters.web.app import App, Rendered, wanted_format
from exporters.web.messages import Request, Response
from tests.support import snapshots

OPENMETRICS = "application/openmetrics-text"
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


class Desk:
    """An app with what it is asked about, to be changed by tests."""

    def __init__(self, snapshot: Snapshot | None = None) -> None:
        self.snapshot = snapshot
        self.now_s = snapshots.TAKEN_MONOTONIC_S
        self.trouble = ""
        self.app = App(
            latest=lambda: self.snapshot,
            metrics=MetricsPage(version="1.2.3", definitions=snapshots.HOST_METRICS),
            page=StatusPage(version="1.2.3", host_rates=dict),
            version="1.2.3",
            standstill=lambda: self.trouble,
            monotonic_s=lambda: self.now_s,
            stale_after_s=3.0,
        )

    def ask(self, path: str, method: str = "GET", **headers: str) -> Response:
        """Return the answer to one request."""
        return self.app(Request(method, path, {name.replace("_", "-"): value for name, value in headers.items()}))


def header(response: Response, name: str) -> str | None:
    """Return one header's value."""
    return dict(response.headers).get(name)


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status"])
def test_before_the_first_snapshot_nothing_is_served(path: str) -> None:
    """Not yet is an answer of its own, with when to come back."""
    response = Desk().ask(path)
    assert (response.status, header(response, "Retry-After")) == (HTTPStatus.SERVICE_UNAVAILABLE, "1")


def test_readiness_follows_the_first_snapshot() -> None:
    """Not ready before, ready after."""
    desk = Desk()
    assert desk.ask("/readyz").status == HTTPStatus.SERVICE_UNAVAILABLE
    desk.snapshot = snapshots.idle_node()
    assert desk.ask("/readyz").status == HTTPStatus.OK


def test_liveness_follows_the_loop() -> None:
    """Alive before the first snapshot; 503 with the reason while the loop stands still; alive again after."""
    desk = Desk()
    assert desk.ask("/livez").status == HTTPStatus.OK
    desk.trouble = "no tick for 30 s"
    assert (desk.ask("/livez").status, desk.ask("/livez").body) == (503, b"no tick for 30 s\n")
    desk.trouble = ""
    assert desk.ask("/livez").status == HTTPStatus.OK


def test_unknown_paths_say_what_there_is() -> None:
    """404 with the list."""
    response = Desk().ask("/metric")
    assert response.status == HTTPStatus.NOT_FOUND
    assert b"/metrics" in response.body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/livez", "/readyz"])
def test_nothing_can_be_changed_over_http(method: str, path: str) -> None:
    """Every method but reading is refused everywhere, with what is allowed."""
    response = Desk(snapshots.idle_node()).ask(path, method)
    assert (response.status, header(response, "Allow")) == (HTTPStatus.METHOD_NOT_ALLOWED, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/metrics", "/api/v1/status", "/livez", "/nope"])
def test_every_answer_carries_security_headers(path: str) -> None:
    """Faults and pages alike."""
    response = Desk(snapshots.idle_node()).ask(path)
    assert header(response, "X-Content-Type-Options") == "nosniff"
    assert header(response, "X-Frame-Options") == "deny"


def test_the_page_carries_its_content_policy() -> None:
    """Only the page needs one."""
    response = Desk(snapshots.idle_node()).ask("/")
    assert response.content_type == "text/html; charset=utf-8"
    assert (header(response, "Content-Security-Policy") or "").startswith("default-src 'none'")


def test_the_status_is_json() -> None:
    """Documented in exporters.status."""
    response = Desk(snapshots.idle_node()).ask("/api/v1/status")
    assert response.content_type == "application/json"
    assert json.loads(response.body)["fresh"] is True


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "text"),
        ("*/*", "text"),
        ("text/html", "text"),
        (PROMETHEUS_2, "openmetrics"),
        (OPENMETRICS, "openmetrics"),
        (f"{OPENMETRICS};version=1.0.0;q=0.6;escaping=allow-utf-8,text/plain;version=1.0.0;q=0.4", "openmetrics"),
        (f"{OPENMETRICS};version=0.0.1", "text"),
        (f"{OPENMETRICS};version=2.0.0", "text"),
        (f"{OPENMETRICS};version=1.0.0;q=0", "text"),
        (f"{OPENMETRICS};q=0.2,text/plain;q=0.9", "text"),
        (f"text/plain;q=0.2,{OPENMETRICS};q=0.9", "openmetrics"),
        (";;,,=;q=", "text"),
    ],
)
def test_the_format_is_negotiated(accept: str, form: str) -> None:
    """OpenMetrics 1.0 where it is preferred, else text: every scraper gets what it reads."""
    assert wanted_format(accept) == form
    response = Desk(snapshots.idle_node()).ask("/metrics", accept=accept)
    wanted = "application/openmetrics-text; version=1.0.0" if form == "openmetrics" else "text/plain; version=0.0.4"
    assert response.content_type.startswith(wanted)
    assert response.body.endswith(b"# EOF\n") is (form == "openmetrics")
    assert header(response, "Vary") == "Accept, Accept-Encoding"


def test_pages_are_compressed_only_where_asked_for() -> None:
    """And hold the same."""
    desk = Desk(snapshots.mixed_node())
    plain, packed = desk.ask("/metrics"), desk.ask("/metrics", accept_encoding="gzip")
    assert header(plain, "Content-Encoding") is None
    assert header(packed, "Content-Encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body


def test_readings_too_old_are_withheld() -> None:
    """Nothing older than it may be is served, and what is served says so."""
    desk = Desk(snapshots.idle_node())
    desk.now_s += 3.0
    assert b"heatsoak_gpu_power_watts" in desk.ask("/metrics").body
    desk.now_s += 0.1
    assert b"heatsoak_gpu_power_watts" not in desk.ask("/metrics").body
    assert b"The agent stands still" in desk.ask("/").body
    assert json.loads(desk.ask("/api/v1/status").body)["fresh"] is False


def test_a_page_is_rendered_once_for_a_snapshot() -> None:
    """However many ask, and however they want it packed; a new snapshot is rendered anew."""
    rendered, made = Rendered(), []

    def render(snapshot: Snapshot, *, fresh: bool) -> bytes:
        made.append((snapshot.hostname, fresh))
        return snapshot.hostname.encode()

    first, second = snapshots.idle_node(), snapshots.cpu_only_node()
    for compressed in (False, True, True, False):
        rendered.get(first, "page", render, fresh=True, compressed=compressed)
    assert made == [("gpu-r07-n12", True)]
    assert rendered.get(second, "page", render, fresh=True, compressed=False) == b"build-03"
    assert rendered.get(second, "page", render, fresh=False, compressed=False) == b"build-03"
    assert made[1:] == [("build-03", True), ("build-03", False)]
