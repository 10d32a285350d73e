"""Addresses to listen on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config.listen import ACCEPTED, ListenAddress, parse_listen
from agent.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9838", ListenAddress(port=9838)),
        ("9838", ListenAddress(port=9838)),
        ("0.0.0.0:9838", ListenAddress("0.0.0.0", 9838)),
        ("[::]:9838", ListenAddress("::", 9838)),
        ("[fe80::1%eth0]:1", ListenAddress("fe80::1%eth0", 1)),
        ("localhost:0", ListenAddress("localhost", 0)),
        ("gpu-7.rack-3.example:65535", ListenAddress("gpu-7.rack-3.example", 65535)),
        ("unix:/run/heatsoak.sock", ListenAddress(path="/run/heatsoak.sock")),
    ],
)
def test_each_documented_form_is_understood(text: str, address: ListenAddress) -> None:
    """The forms of the documentation, and hosts by name."""
    assert parse_listen(text) == address


@pytest.mark.parametrize(
    "text",
    [
        "",
        ":",
        ":65536",
        "98380000",
        "-1",
        "nonsense",
        "nonsense:port",
        "999.1.1.1:80",
        "1.2.3:80",
        "::1:9838",
        "[::1]",
        "[127.0.0.1]:80",
        "[::1\n]:80",
        "a b:80",
        "-a:80",
        "a..b:80",
        "\uff19\uff18",
        "http://localhost:9838",
        "unix:",
        "unix:relative.sock",
        "unix:/a\0b",
        "unix:/" + "x" * 107,
        "x" * 254 + ":80",
    ],
)
def test_anything_else_names_the_accepted_forms(text: str) -> None:
    """A wrong address is refused with the value and what would be right."""
    with pytest.raises(ConfigError) as caught:
        parse_listen(text)
    assert ACCEPTED in str(caught.value)
    assert repr(text) in str(caught.value)


@given(st.text() | st.from_regex(r"\[?[0-9a-f:.]*\]?:[0-9]{1,5}|unix:/.*", fullmatch=True))
def test_any_text_is_refused_or_comes_back_the_same(text: str) -> None:
    """What is understood can be written out and understood again."""
    try:
        address = parse_listen(text)
    except ConfigError:
        return
    assert parse_listen(str(address)) == address
