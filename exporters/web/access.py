"""What every request passes before its route: rate limit, basic authentication; and after it: headers."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import structlog

from exporters.web.auth import PasswordCheck, TooManyWaiting
from exporters.web.config import ConfigSource, WebConfig
from exporters.web.messages import Request, Response, text_response
from exporters.web.schema import RateLimit
from exporters.web.stats import WebStats

App = Callable[[Request], Response]

_RETRY: Final = ("Retry-After", "1")
_CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="heatsoak", charset="UTF-8"')

_log = structlog.get_logger("web")


class Gate:
    """Lets a request through to ``app`` or answers it itself; never raises."""

    def __init__(self, app: App, config: ConfigSource, stats: WebStats, monotonic_s: Callable[[], float]) -> None:
        self._app = app
        self._config = config
        self._stats = stats
        self._passwords = PasswordCheck()
        self._bucket = TokenBucket(monotonic_s)

    async def __call__(self, request: Request) -> Response:
        """Return the answer to ``request``."""
        config = self._config.current()
        try:
            response = await self._refusal(request, config) or self._app(request)
        except Exception:  # noqa: BLE001 - a route's fault costs one answer
            _log.exception("request_failed", path=request.path)
            response = text_response(HTTPStatus.INTERNAL_SERVER_ERROR, "internal error; the agent's log has it")
        self._stats.requests[response.status] += 1
        return _with_headers(response, config.headers)

    async def _refusal(self, request: Request, config: WebConfig) -> Response | None:
        if not self._bucket.take(config.rate_limit):
            return text_response(HTTPStatus.TOO_MANY_REQUESTS, "too many requests", _RETRY)
        if not config.users:
            return None
        try:
            if await self._passwords.allows(request.headers.get("authorization", ""), config.users):
                return None
        except TooManyWaiting:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, "too many log-ins at a time", _RETRY)
        return text_response(HTTPStatus.UNAUTHORIZED, "user name and password are needed", _CHALLENGE)


class TokenBucket:
    """Allows ``burst`` requests at once and one more each interval."""

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._limit = RateLimit()
        self._tokens = 0.0
        self._filled_s = 0.0

    def take(self, limit: RateLimit) -> bool:
        """Return whether one more request is allowed now; a changed ``limit`` begins with a full bucket."""
        interval_s = limit.interval_s()
        if not interval_s:
            return True
        now_s = self._monotonic_s()
        if limit != self._limit:
            self._limit, self._tokens, self._filled_s = limit, float(limit.burst), now_s
        self._tokens = min(float(limit.burst), self._tokens + (now_s - self._filled_s) / interval_s)
        self._filled_s = now_s
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


def _with_headers(response: Response, further: tuple[tuple[str, str], ...]) -> Response:
    """Return ``response`` with the configured headers, which win over its own."""
    if not further:
        return response
    names = {name.lower() for name, _ in further}
    kept = tuple((name, value) for name, value in response.headers if name.lower() not in names)
    return Response(response.status, response.body, response.content_type, kept + further)
