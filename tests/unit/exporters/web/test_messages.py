"""Requests and answers as the routes see them."""

from http import HTTPStatus

import pytest

from exporters.web.messages import Request, quality_of, text_response


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("", False),
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("gzip;q=0.0, identity", False),
        ("*", False),
        ("x-gzip", False),
        ("gzip;q=nonsense", False),
        ("gzip; level=9", True),
    ],
)
def test_gzip_is_wanted_only_where_it_is_asked_for(header: str, wanted: bool) -> None:
    """By name, and with a quality above 0."""
    assert Request("GET", "/", {"accept-encoding": header}).accepts_gzip() is wanted


@pytest.mark.parametrize(("header", "quality"), [("a;q=2", 1.0), ("a;q=-1", 0.0), ("b, a;q=0.3", 0.3), ("b", 0.0)])
def test_a_quality_lies_between_0_and_1(header: str, quality: float) -> None:
    """Whatever the client writes."""
    assert quality_of(header, "a") == quality


def test_a_text_answer_is_one_line() -> None:
    """With its headers."""
    response = text_response(HTTPStatus.NOT_FOUND, "no", ("Allow", "GET"))
    assert (response.body, response.headers) == (b"no\n", (("Allow", "GET"),))
