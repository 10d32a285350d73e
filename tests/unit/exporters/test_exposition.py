"""Writing families: both formats, what is left out, and why."""

import math

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from structlog.testing import capture_logs

from agent.model.text import clean_label
from exporters.exposition import Encoder, page


def family(kind: str = "gauge", *samples: tuple[dict[str, str], float], name: str = "rack_heat") -> Metric:
    """Return a family with samples of the given labels and values."""
    made = Metric(name, 'Says "how\\why"\nit is.', kind)
    suffix = {"counter": "_total", "info": "_info"}.get(kind, "")
    for labels, value in samples:
        made.add_sample(name + suffix, labels, value)
    return made


def test_text_names_a_counter_with_its_suffix_and_openmetrics_without() -> None:
    """The two formats differ in the header of counters."""
    blocks = Encoder().write([family("counter", ({"gpu": "0"}, 3))])
    assert b"# TYPE rack_heat_total counter\n" in page(blocks, "text")
    assert b"# TYPE rack_heat counter\n" in page(blocks, "openmetrics")
    assert page(blocks, "text").endswith(b'rack_heat_total{gpu="0"} 3.0\n')
    assert page(blocks, "openmetrics").endswith(b"# EOF\n")


def test_an_info_family_is_a_gauge_in_text() -> None:
    """The text format knows no info type."""
    blocks = Encoder().write([family("info", ({"version": "1"}, 1))])
    assert b"# TYPE rack_heat_info gauge\n" in page(blocks, "text")
    assert b"# TYPE rack_heat info\n" in page(blocks, "openmetrics")


def test_help_is_escaped_as_each_format_wants_it() -> None:
    """A line break never ends the help line; OpenMetrics escapes quotes too."""
    blocks = Encoder().write([family("gauge", ({}, 1))])
    assert b'# HELP rack_heat Says "how\\\\why"\\nit is.\n' in page(blocks, "text")
    assert b'# HELP rack_heat Says \\"how\\\\why\\"\\nit is.\n' in page(blocks, "openmetrics")


def test_a_series_is_never_repeated() -> None:
    """The first of two samples with the same labels stays, the other is counted."""
    encoder = Encoder()
    blocks = encoder.write([family("gauge", ({"gpu": "0"}, 1), ({"gpu": "0"}, 2), ({"gpu": "1"}, 3))])
    assert page(blocks, "text").count(b'{gpu="0"}') == 1
    assert encoder.dropped["duplicate_series"] == 1


def test_a_family_is_never_repeated() -> None:
    """The first of two families with one name stays, the other is counted."""
    encoder = Encoder()
    blocks = encoder.write([family("gauge", ({}, 1)), family("counter", ({}, 2))])
    assert encoder.without_repeats(blocks) == blocks[:1]
    assert encoder.dropped["duplicate_family"] == 1


def test_what_is_not_finite_is_unknown_and_absent() -> None:
    """NaN and infinity never reach a page."""
    encoder = Encoder()
    values = [({"gpu": str(index)}, value) for index, value in enumerate((math.nan, math.inf, -math.inf, 1.0))]
    assert page(encoder.write([family("gauge", *values)]), "text").count(b"rack_heat{") == 1
    assert encoder.dropped["not_finite"] == 3


def test_a_family_that_cannot_be_written_costs_itself_only() -> None:
    """A label that is no text drops its family; the next one is whole, and the first fault is logged once."""
    encoder = Encoder()
    broken = family("gauge", ({"gpu": 0}, 1.0))  # type: ignore[dict-item]
    with capture_logs() as logs:
        for _ in range(2):
            text = page(encoder.write([broken, family("gauge", ({}, 1), name="rack_cold")]), "text")
    assert b"rack_cold 1.0" in text
    assert b"rack_heat" not in text
    assert encoder.dropped["family"] == 2
    assert [(entry["event"], entry["reason"], entry["metric"]) for entry in logs] == [
        ("metric_left_out", "family", "rack_heat")
    ]


def test_remembered_labels_are_bounded() -> None:
    """Labels that keep changing do not fill the memory."""
    encoder = Encoder()
    for start in range(0, 60_000, 10_000):
        encoder.write([family("gauge", *(({"pid": str(start + pid)}, 1.0) for pid in range(10_000)))])
    assert len(encoder._labels) <= 20_000


@given(st.text(st.characters(), max_size=200), st.floats(allow_nan=False, allow_infinity=False))
def test_every_cleaned_label_is_read_back_as_it_was(text: str, value: float) -> None:
    """Whatever a label holds, cleaned it survives both formats unchanged."""
    label = clean_label(text)
    blocks = Encoder().write([family("gauge", ({"name": label}, value))])
    for parse, form in ((parse_text, "text"), (parse_openmetrics, "openmetrics")):
        (read,) = parse(page(blocks, form).decode())  # type: ignore[arg-type]
        assert [(sample.labels, sample.value) for sample in read.samples] == [({"name": label}, value)]


@given(st.text(st.characters(), max_size=50))
def test_even_an_uncleaned_label_leaves_one_line_a_sample(text: str) -> None:
    """The writer itself never lets a label end its line or break the encoding."""
    written = page(Encoder().write([family("gauge", ({"name": text}, 1.0))]), "text")
    assert written.count(b"\n") == 3
    written.decode()
