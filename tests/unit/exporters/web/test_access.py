"""What a request passes before and after its route."""

import asyncio
from http import HTTPStatus

from structlog.testing import capture_logs

from exporters.web.access import Gate, TokenBucket
from exporters.web.auth import TooManyWaiting
from exporters.web.config import FixedConfig, WebConfig
from exporters.web.messages import Request, Response, text_response
from exporters.web.schema import RateLimit
from exporters.web.stats import WebStats
from tests.support.clock import FakeClock
from tests.unit.exporters.web.test_auth import USERS, basic


def app(request: Request) -> Response:
    """Answer with the path; break on /broken."""
    if request.path == "/broken":
        raise ZeroDivisionError
    return text_response(HTTPStatus.OK, request.path, ("X-Frame-Options", "deny"))


def gate(config: WebConfig | None = None, stats: WebStats | None = None) -> Gate:
    """Return a gate before the app."""
    return Gate(app, FixedConfig(config), stats or WebStats(), FakeClock().monotonic_s)


def ask(through: Gate, path: str = "/", **headers: str) -> Response:
    """Return the answer through a gate."""

    async def answer() -> Response:
        return await through(Request("GET", path, headers))

    return asyncio.run(answer())


def test_without_a_configuration_everybody_is_let_through() -> None:
    """And counted by status."""
    stats = WebStats()
    assert ask(gate(stats=stats), "/metrics").body == b"/metrics\n"
    assert stats.requests[HTTPStatus.OK] == 1


def test_with_users_everybody_must_say_who_they_are() -> None:
    """401 with a challenge, on every path."""
    guarded = gate(WebConfig(users=USERS))
    refused = ask(guarded, "/livez")
    assert refused.status == HTTPStatus.UNAUTHORIZED
    assert dict(refused.headers)["WWW-Authenticate"].startswith("Basic realm=")
    assert ask(guarded, "/livez", authorization=basic("alice", "wonderland")).status == HTTPStatus.OK


def test_too_many_log_ins_at_a_time_are_told_to_come_back() -> None:
    """503, not 401: the password may well be right."""

    async def crowd() -> list[Response]:
        guarded = gate(WebConfig(users=USERS))
        requests = [Request("GET", "/", {"authorization": basic("alice", f"guess {number}")}) for number in range(20)]
        return await asyncio.gather(*(guarded(request) for request in requests))

    statuses = [response.status for response in asyncio.run(crowd())]
    assert statuses.count(HTTPStatus.SERVICE_UNAVAILABLE) == 4
    assert statuses.count(HTTPStatus.UNAUTHORIZED) == 16
    assert issubclass(TooManyWaiting, Exception)


def test_a_route_that_breaks_costs_one_answer() -> None:
    """The client learns nothing but that it broke; the log has it."""
    stats = WebStats()
    with capture_logs() as logs:
        response = ask(gate(stats=stats), "/broken")
    assert response.status == HTTPStatus.INTERNAL_SERVER_ERROR
    assert b"ZeroDivision" not in response.body
    assert [entry["event"] for entry in logs] == ["request_failed"]
    assert stats.requests[HTTPStatus.INTERNAL_SERVER_ERROR] == 1


def test_configured_headers_win() -> None:
    """They are on every answer and replace those of the routes."""
    configured = WebConfig(headers=(("x-frame-options", "sameorigin"), ("Strict-Transport-Security", "max-age=1")))
    headers = ask(gate(configured)).headers
    assert headers == (("x-frame-options", "sameorigin"), ("Strict-Transport-Security", "max-age=1"))


def test_a_rate_limit_lets_a_burst_through_and_then_one_an_interval() -> None:
    """429 with when to come back."""
    limited = gate(WebConfig(rate_limit=RateLimit("1s", 2)))
    assert [ask(limited).status for _ in range(3)] == [200, 200, 429]
    clock = FakeClock()
    bucket, limit = TokenBucket(clock.monotonic_s), RateLimit("500ms", 2)
    assert [bucket.take(limit) for _ in range(3)] == [True, True, False]
    clock.advance(0.5)
    assert [bucket.take(limit) for _ in range(2)] == [True, False]
    clock.advance(60.0)
    assert [bucket.take(limit) for _ in range(3)] == [True, True, False]


def test_a_changed_limit_begins_with_a_full_bucket() -> None:
    """A reload is not punished for what was before; no limit is no limit."""
    bucket = TokenBucket(FakeClock().monotonic_s)
    assert [bucket.take(RateLimit("1h", 1)) for _ in range(2)] == [True, False]
    assert bucket.take(RateLimit("1h", 2))
    assert all(bucket.take(RateLimit()) for _ in range(100))
