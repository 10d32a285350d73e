"""Pictures: which are drawn, that they are well-formed, and that they take the page's colours."""

import re
from xml.etree import ElementTree as ET

import pytest

from agent.bench.model import BenchResult, Step
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

    texts = _texts(bars)
    assert {"888.9", "177.8", "711.1"} <= set(texts)
    assert texts.count("0") == 1, "the axis alone begins at 0"


def test_a_curve_is_of_the_mode_with_most_batches() -> None:
    """One fast XLA step does not hide the curve of graph mode."""
    steps = (Step("graph", curve(1000.0)), Step("xla", curve(3000.0, (128,), mode="xla")))
    (picture, *_) = pictures(compare([bench_result(*steps)]))
    assert "made up A, bf16 graph" in picture.svg


def test_bars_of_different_modes_stand_apart() -> None:
    """XLA is never set beside graph mode without a word."""
    steps = (Step("graph", curve(1000.0)), Step("xla", curve(3000.0, mode="xla")))
    bars = _named("precision-resnet50", bench_result(*steps))

    assert [text for text in _texts(bars) if text in ("bf16", "graph", "xla")] == ["bf16", "graph", "bf16", "xla"]
    assert {"888.9", "2,667"} <= set(_texts(bars))


@pytest.mark.parametrize("name", ["throughput-resnet50", "precision-resnet50"])
def test_what_was_disturbed_is_hollow_and_explained(name: str) -> None:
    """A point that says little looks like it."""
    calm, disturbed = (bench_result(Step("one", curve(1000.0, contended=contended))) for contended in (False, True))
    told = "hollow: contended, slowed or unsteady"

    assert told not in _texts(_named(name, calm))
    assert told in _texts(_named(name, disturbed))
    blue = "stroke: #0072b2"
    filled, hollow = (re.findall(f"fill: #0072b2; {blue}", _named(name, one).svg) for one in (calm, disturbed))
    assert len(filled) > len(hollow)


def test_a_disturbed_measurement_is_hollow_only_where_it_shows() -> None:
    """Memory is what it is, whoever else computes; the best bar counts, not the others."""
    steps = (Step("slow", curve(500.0, (16,), contended=True)), Step("fast", curve(1000.0, (128,))))
    result = bench_result(*steps)
    for name in ("memory-resnet50", "precision-resnet50"):
        assert "hollow: contended, slowed or unsteady" not in _texts(_named(name, result))


def test_number_types_that_nobody_knows_are_drawn_last() -> None:
    """A file may come from anybody."""
    steps = (Step("odd", curve(10.0, dtype="$a_8")), Step("own", curve(1000.0, dtype="fp32")))
    bars = _named("precision-resnet50", bench_result(*steps))
    assert [text for text in _texts(bars) if text in ("$a_8", "fp32")] == ["fp32", "$a_8"]


def test_many_batches_do_not_crowd_the_axis() -> None:
    """A search tries dozens."""
    picture = _named("throughput-resnet50", bench_result(Step("one", curve(1000.0, range(100, 160)))))
    assert len([text for text in _texts(picture) if text.isdecimal() and 100 <= int(text) < 160]) <= 8


def test_a_curve_of_one_point_is_seen() -> None:
    """A marker stands where no line can."""
    picture = _named("throughput-resnet50", bench_result(Step("one", curve(1000.0, (64,)))))
    drawn = [element.attrib for element in ET.fromstring(picture.svg).iter() if element.tag.endswith("}use")]
    points = [use for use in drawn if "#0072b2" in use.get("style", "")]
    assert points
    assert "64" in _texts(picture)


def test_a_legend_is_as_large_as_a_phone_needs() -> None:
    """Texts are at least 9 points in a picture that is no wider than a phone's page; long labels are broken."""
    picture = _named("throughput-resnet50", bench_result(label="long label " * 6))
    width = float(ET.fromstring(picture.svg).attrib["viewBox"].split()[2])
    sizes = {float(size) for size in re.findall(r"font-size: ([\d.]+)px", picture.svg)}

    assert width < 340
    assert min(sizes) >= 9
    assert max(map(len, _texts(picture))) <= 52


def test_twenty_results_with_long_labels_leave_room_for_the_curves() -> None:
    """The picture grows with its legend, and labels that begin alike keep bars of their own."""
    results = [bench_result(label=f"{'long ' * 20}{at}") for at in range(20)]
    prices = PriceList(currency="EUR", card=(PricedCard(name="Made-Up 9000", price=100.0),))

    found = {one.name: one for one in pictures(compare(results, prices))}

    few = next(one for one in pictures(compare(results[:1])) if one.name == "throughput-resnet50")
    assert _height(found["throughput-resnet50"]) > 2 * _height(few)
    assert len(set(re.findall("fill: (#[0-9a-f]{6})", found["precision-resnet50"].svg))) >= 20
    assert found["price"].svg.count(">222,222.2<") == 20


def _named(name: str, *results: BenchResult) -> Picture:
    return next(one for one in pictures(compare(results)) if one.name == name)


def _texts(picture: Picture) -> list[str]:
    return [text for element in ET.fromstring(picture.svg).iter() if (text := element.text) and text.strip()]


def _height(picture: Picture) -> float:
    return float(ET.fromstring(picture.svg).attrib["viewBox"].split()[3])
