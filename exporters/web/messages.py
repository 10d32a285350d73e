"""A request and its answer, as the routes see them."""

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

import msgspec

JSON_TYPE = "application/json"
PLAIN_TYPE = "text/plain; charset=utf-8"


class Request(msgspec.Struct, frozen=True):
    """A request without its body; header names are lower case, a repeated header is joined by commas."""

    method: str
    path: str
    headers: Mapping[str, str] = MappingProxyType({})

    def accepts_gzip(self) -> bool:
        """Return whether the client asked for gzip by name."""
        return quality_of(self.headers.get("accept-encoding", ""), "gzip") > 0


class Response(msgspec.Struct, frozen=True):
    """An answer; Content-Length, Date and Connection are added when it is sent."""

    status: HTTPStatus
    body: bytes = b""
    content_type: str = PLAIN_TYPE
    headers: tuple[tuple[str, str], ...] = ()


def text_response(status: HTTPStatus, text: str, *headers: tuple[str, str]) -> Response:
    """Return an answer of one plain line."""
    return Response(status, f"{text}\n".encode(), headers=headers)


def quality_of(header: str, name: str) -> float:
    """Return the quality, 0 to 1, that an Accept-like header gives to exactly ``name``; 0 where it is not listed."""
    for entry in header.split(","):
        value, _, parameters = entry.partition(";")
        if value.strip().lower() == name:
            return _quality(parameters)
    return 0.0


def _quality(parameters: str) -> float:
    for parameter in parameters.split(";"):
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
