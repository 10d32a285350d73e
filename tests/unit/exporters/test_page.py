"""The status page as HTML: safe against every text, sound for every node."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import msgspec
import pytest

from exporters.page import StatusPage
from tests.support import snapshots

VOID = {"meta", "use", "rect", "path", "circle", "polygon", "polyline", "link", "br"}


class Outline(HTMLParser):
    """Notes every element with its attributes, and what is not closed."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that what closes was opened last."""
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text.append(data)


def page() -> StatusPage:
    """Return a page without host rates."""
    return StatusPage(version="1.2.3", host_rates=dict)


def outline_of(html: bytes) -> Outline:
    """Return the elements of a page."""
    outline = Outline()
    outline.feed(html.decode())
    return outline


@pytest.mark.parametrize("name", list(snapshots.ALL))
def test_every_page_is_well_formed_and_loads_nothing(name: str) -> None:
    """Tags close in order; there is no script, no foreign address, no inline style."""
    outline = outline_of(page().render(snapshots.ALL[name]()))
    assert outline.open == []
    tags = {tag for tag, _ in outline.elements}
    assert not tags & {"script", "img", "iframe", "link", "form"}
    for _, attributes in outline.elements:
        assert not {key for key in attributes if key.startswith("on") or key in ("style", "src")}
        address = attributes.get("href") or ""
        assert not address or address.startswith("#") or address in ("metrics", "api/v1/status")


def test_hostile_text_stays_text() -> None:
    """No text from outside becomes an element or ends an attribute."""
    html = page().render(snapshots.hostile_node())
    assert b"<script" not in html
    assert html.count(b"&lt;script&gt;") >= 10
    assert b"\x00" not in html


def test_the_policy_allows_this_style_and_nothing_else() -> None:
    """The hash in the Content-Security-Policy is that of the style as it stands in the page."""
    made = page()
    style = re.search(r"<style>(.*?)</style>", made.render(snapshots.idle_node()).decode(), re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in made.content_security_policy
    assert made.content_security_policy.startswith("default-src 'none'")
    assert "unsafe" not in made.content_security_policy


def test_light_and_dark_and_small_screens_are_served() -> None:
    """The reader's own settings decide."""
    html = page().render(snapshots.idle_node()).decode()
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html
    assert '<meta http-equiv="refresh" content="10">' in html


def test_commands_in_backticks_are_set_as_code() -> None:
    """The next action can be copied."""
    html = page().render(snapshots.mixed_node()).decode()
    assert "<code>heatsoak probe matmul --gpu 5</code>" in html


def test_the_state_is_told_by_word_icon_and_colour() -> None:
    """Nobody needs to tell red from green."""
    html = page().render(snapshots.mixed_node()).decode()
    degraded = html[html.index('id="gpu-5"') - 60 : html.index('id="gpu-5"') + 300]
    assert 'class="card bad"' in degraded
    assert 'href="#bad"' in degraded
    assert "Degraded" in degraded


def test_a_rack_of_cards_has_an_overview_in_their_order() -> None:
    """Many cards are listed by number at the top; a single one needs no list."""
    html = page().render(snapshots.mixed_node()).decode()
    assert re.findall(r'href="#gpu-(\d)"', html) == list("01234567")
    assert "<nav" not in page().render(snapshots.idle_node()).decode()


def test_a_recording_that_is_played_is_told() -> None:
    """Nobody takes its cards for those of this machine."""
    idle = snapshots.idle_node()
    played = msgspec.structs.replace(idle, nvml=msgspec.structs.replace(idle.nvml, recording="bug.jsonl"))
    assert "A recording is played: bug.jsonl." in page().render(played).decode()
    assert "A recording is played" not in page().render(idle).decode()
