"""Pictures: which are drawn, that they are well-formed, and that they take the page's colours."""

import re
from xml.etree import ElementTree as ET

import pytest

from agent.bench.model import Step
from agent.compare.comparison import compare
from agent.compare.model import Comparison, Picture
from agent.compare.plots import pictures
from agent.compare.prices import PricedCard, PriceList
from tests.support.results import bench_result, curve, plain_steps, training

LABEL = "_a<b>$x_{1$ & Co"
PRICES = PriceList(currency="EUR", card=(PricedCard(name=LABEL, price=100.0),))


@pytest.fixture(scope="module")
def drawn() -> tuple[Picture, ...]:
    """Draw a comparison that has something of everything."""
    spread = Step("two", (training(1700.0, batch=64, replicas=2),))
    results = [bench_result(*plain_steps(), spread, label=LABEL), bench_result(*plain_steps(1.5), label="b")]
    return pictures(compare(results, PRICES))


def test_every_curve_has_its_picture(drawn: tuple[Picture, ...]) -> None:
    """Throughput, precision and memory of each network, scaling, and price."""
    networks = [f"{kind}-{name}" for name in ("resnet50", "vgg16") for kind in ("throughput", "precision", "memory")]
    assert [picture.name for picture in drawn] == [*networks, "scaling", "price"]


def test_pictures_are_well_formed_and_show_labels_as_they_are(drawn: tuple[Picture, ...]) -> None:
    """Neither markup nor a formula in a label changes a picture."""
    for picture in drawn:
        texts = "".join(ET.fromstring(picture.svg).itertext())
        assert LABEL in texts
        assert ET.fromstring(picture.file).attrib["style"] == "background:#fff;color:#000"


def test_pictures_of_one_page_share_no_identifier(drawn: tuple[Picture, ...]) -> None:
    """Each refers to its own parts only."""
    seen: set[str] = set()
    for picture in drawn:
        own = {element.attrib["id"] for element in ET.fromstring(picture.svg).iter() if "id" in element.attrib}
        assert not own & seen
        seen |= own


def test_pictures_take_the_colour_of_the_text_around_them(drawn: tuple[Picture, ...]) -> None:
    """So they are readable in light and dark; their size is the page's."""
    for picture in drawn:
        assert "currentColor" in picture.svg
        root = ET.fromstring(picture.svg)
        assert "width" not in root.attrib
        assert "viewBox" in root.attrib


def test_the_same_comparison_is_drawn_the_same() -> None:
    """A picture in a repository changes when its figures do."""
    compared = compare([bench_result()])
    assert pictures(compared) == pictures(compared)


def test_nothing_measured_draws_nothing() -> None:
    """An empty comparison is no fault."""
    assert pictures(Comparison(results=())) == ()


def test_what_was_not_measured_has_no_bar() -> None:
    """Unknown is absent, never 0."""
    left = bench_result(Step("bf16", curve(1000.0)), Step("fp32", curve(200.0, dtype="fp32")))
    right = bench_result(Step("bf16", curve(800.0)), label="b")
    (bars,) = [one for one in pictures(compare([left, right])) if one.name == "precision-resnet50"]

    texts = [text for element in ET.fromstring(bars.svg).iter() if (text := element.text) and text.strip()]
    assert {"888.9", "177.8", "711.1"} <= set(texts)
    assert texts.count("0") == 1, "the axis alone begins at 0"


def test_a_curve_is_of_the_mode_with_most_batches() -> None:
    """One fast XLA step does not hide the curve of graph mode."""
    steps = (Step("graph", curve(1000.0)), Step("xla", curve(3000.0, (128,), mode="xla")))
    (picture, *_) = pictures(compare([bench_result(*steps)]))
    assert "made up A, bf16 graph" in picture.svg


def test_twenty_results_with_long_labels_leave_room_for_the_curves() -> None:
    """The picture grows with its legend, and labels that begin alike keep bars of their own."""
    results = [bench_result(label=f"{'long ' * 20}{at}") for at in range(20)]
    prices = PriceList(currency="EUR", card=(PricedCard(name="Made-Up 9000", price=100.0),))

    found = {one.name: one for one in pictures(compare(results, prices))}

    few = next(one for one in pictures(compare(results[:1])) if one.name == "throughput-resnet50")
    assert _height(found["throughput-resnet50"]) > 2 * _height(few)
    assert len(set(re.findall("fill: (#[0-9a-f]{6})", found["precision-resnet50"].svg))) >= 20
    assert found["price"].svg.count(">222,222.2<") == 20


def _height(picture: Picture) -> float:
    return float(ET.fromstring(picture.svg).attrib["viewBox"].split()[3])
