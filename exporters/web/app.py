"""The routes: what is served from the last snapshot, and where the agent says how it is."""

import gzip
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol

from agent.model.snapshot import Snapshot
from exporters.exposition import CONTENT_TYPES, Format
from exporters.page import StatusPage
from exporters.prometheus import MetricsPage
from exporters.status import encode_status, status_of
from exporters.web.messages import JSON_TYPE, Request, Response, quality_of, text_response

Route = Callable[[Request], Response]


class Render(Protocol):
    """Makes a page of a snapshot."""

    def __call__(self, snapshot: Snapshot, *, fresh: bool) -> bytes:
        """Return the page; one that is not ``fresh`` holds no readings."""


_SECURITY_HEADERS: Final = (
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "deny"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)
_ALLOWED: Final = ("GET", "HEAD")
_GZIP_LEVEL: Final = 3


class App:
    """Answers requests from the last snapshot; reads nothing else, changes nothing."""

    def __init__(
        self,
        *,
        latest: Callable[[], Snapshot | None],
        metrics: MetricsPage,
        page: StatusPage,
        version: str,
        standstill: Callable[[], str],
        monotonic_s: Callable[[], float],
        stale_after_s: float,
    ) -> None:
        """Take what to serve.

        ``standstill`` returns why the agent's loop does not move, or empty text while it does. A snapshot
        older than ``stale_after_s`` keeps what is about the agent and loses its readings.
        """
        self._latest = latest
        self._metrics = metrics
        self._page = page
        self._version = version
        self._standstill = standstill
        self._monotonic_s = monotonic_s
        self._stale_after_s = stale_after_s
        self._rendered = Rendered()
        self._routes: dict[str, Route] = {
            "/": self._status_page,
            "/metrics": self._metrics_page,
            "/api/v1/status": self._status_json,
            "/livez": self._live,
            "/readyz": self._ready,
        }

    def __call__(self, request: Request) -> Response:
        """Return the answer to ``request``."""
        route = self._routes.get(request.path)
        if route is None:
            known = ", ".join(self._routes)
            response = text_response(HTTPStatus.NOT_FOUND, f"nothing here; there are {known}")
        elif request.method not in _ALLOWED:
            allow = ("Allow", ", ".join(_ALLOWED))
            response = text_response(HTTPStatus.METHOD_NOT_ALLOWED, "only reading is possible here", allow)
        else:
            response = route(request)
        headers = response.headers + _SECURITY_HEADERS
        return Response(response.status, response.body, response.content_type, headers)

    def _metrics_page(self, request: Request) -> Response:
        form = wanted_format(request.headers.get("accept", ""))

        def render(snapshot: Snapshot, *, fresh: bool) -> bytes:
            return self._metrics.render(snapshot, form, fresh=fresh)

        return self._from_snapshot(request, form, CONTENT_TYPES[form], render)

    def _status_page(self, request: Request) -> Response:
        response = self._from_snapshot(request, "page", "text/html; charset=utf-8", self._page.render)
        headers = (*response.headers, ("Content-Security-Policy", self._page.content_security_policy))
        return Response(response.status, response.body, response.content_type, headers)

    def _status_json(self, request: Request) -> Response:
        def render(snapshot: Snapshot, *, fresh: bool) -> bytes:
            return encode_status(status_of(snapshot, version=self._version, fresh=fresh))

        return self._from_snapshot(request, "json", JSON_TYPE, render)

    def _live(self, _: Request) -> Response:
        reason = self._standstill()
        if reason:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, reason)
        return text_response(HTTPStatus.OK, "alive")

    def _ready(self, _: Request) -> Response:
        if self._latest() is None:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, "no readings yet")
        return text_response(HTTPStatus.OK, "ready")

    def _from_snapshot(self, request: Request, name: str, content_type: str, render: Render) -> Response:
        snapshot = self._latest()
        if snapshot is None:
            return text_response(HTTPStatus.SERVICE_UNAVAILABLE, "no readings yet", ("Retry-After", "1"))
        fresh = self._monotonic_s() - snapshot.taken_monotonic_s <= self._stale_after_s
        compressed = request.accepts_gzip()
        body = self._rendered.get(snapshot, name, render, fresh=fresh, compressed=compressed)
        encoding = (("Content-Encoding", "gzip"),) if compressed else ()
        return Response(HTTPStatus.OK, body, content_type, (("Vary", "Accept, Accept-Encoding"), *encoding))


class Rendered:
    """Keeps what was rendered from the latest snapshot: each page once a tick, whoever asks for it."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None
        self._pages: dict[tuple[str, bool, bool], bytes] = {}

    def get(self, snapshot: Snapshot, name: str, render: Render, *, fresh: bool, compressed: bool) -> bytes:
        """Return the page ``name`` of ``snapshot``, rendered now or earlier."""
        if snapshot is not self._snapshot:
            self._snapshot = snapshot
            self._pages = {}
        key = (name, fresh, compressed)
        if key not in self._pages:
            if compressed:
                plain = self.get(snapshot, name, render, fresh=fresh, compressed=False)
                self._pages[key] = gzip.compress(plain, _GZIP_LEVEL, mtime=0)
            else:
                self._pages[key] = render(snapshot, fresh=fresh)
        return self._pages[key]


def wanted_format(accept: str) -> Format:
    """Return the format for an Accept header: OpenMetrics 1.0 where it is asked for at least as much as text."""
    openmetrics = max((_quality(entry) for entry in accept.split(",") if _is_openmetrics(entry)), default=0.0)
    if openmetrics and openmetrics >= quality_of(accept, "text/plain"):
        return "openmetrics"
    return "text"


def _is_openmetrics(entry: str) -> bool:
    media_type, *parameters = (part.strip().lower() for part in entry.split(";"))
    versions = [part.partition("=")[2] for part in parameters if part.startswith("version=")]
    return media_type == "application/openmetrics-text" and versions in ([], ["1.0.0"])


def _quality(entry: str) -> float:
    return quality_of(entry, entry.partition(";")[0].strip().lower())
