"""A comparison in each form: complete, readable back, and proof against what labels hold."""

import csv
import html
import io
import json
import re

import msgspec
import pytest
from rich.console import Console

from agent.bench.model import Step
from agent.compare import render
from agent.compare.comparison import compare
from agent.compare.model import Comparison
from agent.compare.prices import PricedCard, PriceList
from agent.compare.published import published
from agent.compare.render_html import page
from tests.support.results import bench_result, curve, facts, machine, plain_steps, training

NASTY = 'x<script>alert("1")</script>|[bold]\\,"y"'
PRICES = PriceList(
    currency="EUR", energy_price_per_kwh=0.3, years=4.0, utilisation=0.6, card=(PricedCard(name=NASTY, price=100.0),)
)


@pytest.fixture(scope="module")
def compared() -> Comparison:
    """Return a comparison that has something of everything."""
    spread = Step("two", (training(1700.0, batch=64, replicas=2),))
    left = bench_result(*plain_steps(), spread, label=NASTY)
    again = bench_result(*plain_steps(1.03), label="again", on=machine(tensorflow="2.9.0"))
    slowed = curve(1000.0, card="00000002", throttle_share={"hw_thermal": 0.5})
    other = bench_result(Step("resnet50", slowed), label="other", on=machine(facts("00000002", name="Other")))
    return compare([left, again, other], PRICES, published())


def test_csv_reads_back_whole(compared: Comparison) -> None:
    """Every ranking, caution, difference, headline and figure is a row; numbers are in full."""
    head, *rows = list(csv.reader(io.StringIO(render.as_csv(compared))))

    assert tuple(head) == render.CSV_HEAD
    assert {len(row) for row in rows} == {len(head)}
    found = [dict(zip(head, row, strict=True)) for row in rows]
    places = [
        (row["label"], row["name"], float(row["value"]), int(row["rank"])) for row in found if row["table"] == "ranking"
    ]
    assert places == [
        (row.label, ranking.metric, row.value, row.rank) for ranking in compared.rankings for row in ranking.rows
    ]
    for table, number in (
        ("caution", len(compared.cautions)),
        ("note", len(compared.notes)),
        ("difference", len(compared.differences)),
        ("scaling", len(compared.scaling)),
    ):
        assert len([row for row in found if row["table"] == table]) == number > 0
    assert {row["table"] for row in found} >= {"headline", "figure", "published"}
    assert all(render.METHODS_DIFFER in row["note"] for row in found if row["table"] == "published")


def test_markdown_reads_back_as_tables(compared: Comparison) -> None:
    """Each table has as many cells in every row as in its head, and nothing of a label is obeyed."""
    text = render.markdown(compared)
    blocks = [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    read = [[tuple(_cells(line)) for line in block] for block in blocks]

    wanted = [table for table in render.tables(compared) if not table.detail]
    assert [(block[0], tuple(block[2:])) for block in read] == [(table.head, table.rows) for table in wanted]
    assert "<script" not in text


def test_markdown_of_a_label_is_shown() -> None:
    """No picture is fetched, no link made, from what somebody called a result."""
    result = msgspec.structs.replace(bench_result(), label="![x](http://a/b.png) `c` *d*")
    text = render.markdown(compare([result]))
    assert r"!\[x\](http://a/b.png) \`c\` \*d\*" in text
    assert "![x]" not in text


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\) \| ", line.removeprefix("| ").removesuffix(" |"))
    return [html.unescape(re.sub(r"\\(.)", r"\1", cell)) for cell in cells]


def test_json_reads_back_into_the_same_comparison(compared: Comparison) -> None:
    """The form is the documented struct."""
    assert msgspec.json.decode(render.as_json(compared), type=Comparison) == compared
    assert json.loads(render.as_json(compared))["rankings"][0]["unit"] == "images/s"


def test_the_page_escapes_labels_and_fetches_nothing(compared: Comparison) -> None:
    """A result file from elsewhere cannot run a script in the reader's browser."""
    text = page(compared, ())

    assert "<script" not in text
    assert html.escape(NASTY, quote=False).partition("[")[0] in text.replace("&#34;", '"')
    assert not re.search(r'(src|href)="(?!#)', text)
    assert 'name="viewport"' in text
    assert "prefers-color-scheme: dark" in text


def test_the_page_heads_groups_and_folds_what_is_long(compared: Comparison) -> None:
    """One table for each metric, a heading for each subject in it; further tables open on demand."""
    text = page(compared, ())
    own = [one for one in compared.rankings if (one.metric, one.basis) == ("throughput", "own_best")]

    for ranking in own:
        assert f'<th scope="rowgroup" colspan="5">{ranking.subject}</th>' in text
    assert text.count("<details>") == len([one for one in render.tables(compared) if one.folded]) > 1
    assert text.count("<table") == len(list(render.tables(compared)))


def test_the_page_says_why_it_has_no_pictures(compared: Comparison) -> None:
    """Nobody looks for what is not there."""
    assert "no pictures today" in page(compared, (), without="no pictures today")


@pytest.mark.parametrize("form", ["terminal", "markdown", "html", "csv", "json"])
def test_every_form_carries_every_caution(compared: Comparison, form: str) -> None:
    """Whoever reads one form only is warned too."""
    text = {
        "terminal": _terminal(compared),
        "markdown": re.sub(r"\\(.)", r"\1", html.unescape(render.markdown(compared))),
        "html": html.unescape(page(compared, ())),
        "csv": "\n".join(" ".join(row) for row in csv.reader(io.StringIO(render.as_csv(compared)))),
        "json": repr(msgspec.json.decode(render.as_json(compared), type=Comparison)),
    }[form]
    for caution in compared.cautions:
        assert (repr(caution.detail)[1:-1] if form == "json" else caution.detail) in text
        assert caution.effect in text
    assert "slowed by hw_thermal for 50%" in text


def _terminal(compared: Comparison) -> str:
    stream = io.StringIO()
    render.terminal(compared, Console(file=stream, width=2000))
    return stream.getvalue()


def test_every_rank_names_its_metric_with_unit_and_what_is_compared(compared: Comparison) -> None:
    """A number without its unit and configuration ranks nothing."""
    ranks = {table.title: table for table in render.tables(compared) if table.title.startswith("Rank")}

    assert ranks["Rank by throughput, images/s: resnet50 bf16 graph 224 px, batch 128, method 1"].head[:2] == (
        "rank", "result",
    )  # fmt: skip
    own = ranks["Rank by throughput, images/s: each card's own best configuration"]
    assert own.head == ("what", "rank", "result", "images/s", "configuration", "marks")
    assert [row[0] for row in own.rows if row[0]] == ["resnet50 224 px, method 1", "vgg16 224 px, method 1"]
    assert len(ranks) == len({(one.metric, one.basis) for one in compared.rankings})
    for unit in ("images/s per 10,000 EUR", "EUR per million images", "images/s/W"):
        assert any(unit in title for title in ranks)
    assert sum(len(table.rows) for table in ranks.values()) == sum(len(one.rows) for one in compared.rankings)


def test_a_price_list_ranks_cards() -> None:
    """The column is called what stands in it."""
    card = PricedCard(name="Paper 1", price=1.0, images_per_second=5.0, source="a paper")
    (table, *_) = render.tables(compare([], PriceList(currency="EUR", card=(card,))))
    assert table.head == ("rank", "card", "images/s", "source")
    assert table.rows == (("1", "Paper 1", "5.000", "a paper"),)


def test_csv_says_each_thing_in_its_own_column(compared: Comparison) -> None:
    """What was compared, the configuration where each has its own, the source where there is one; nothing doubled."""
    card = PricedCard(name="Paper 1", price=1.0, images_per_second=5.0, source="a paper")
    quoted = [row for row in _rows(compare([], PriceList(currency="EUR", card=(card,)))) if row["table"] == "ranking"]
    rows = _rows(compared)
    ranked = [row for row in rows if row["table"] == "ranking"]

    assert {(row["subject"], row["configuration"]) for row in ranked if row["note"].startswith("the best conf")} == {
        ("resnet50 bf16 graph 224 px, batch 128, method 1", "")
    }
    assert {row["configuration"] for row in ranked if row["note"].startswith("each card")} >= {
        "resnet50 bf16 xla 224 px, batch 128"
    }
    assert quoted[0]["source"] == "a paper"
    assert quoted[0]["subject"] == "circumstances not said"
    published = [row for row in rows if row["table"] == "published"]
    assert len(published) == len({tuple(row.values()) for row in published}) > 0
    assert all(row["source"] and row["source"] not in row["note"] for row in published)


@pytest.mark.parametrize("label", ['=HYPERLINK("http://a","b")', "+1", "-1", "@SUM(A1)"])
def test_no_label_is_computed_by_a_spreadsheet(label: str) -> None:
    """Numbers stay numbers, the negative ones too."""
    rows = _rows(compare([bench_result(label=label), bench_result(*plain_steps(0.9), label="b")]))

    assert {row["label"] for row in rows if row["table"] == "figure"} == {f"'{label}", "b"}
    assert any(float(row["value"]) < 0 for row in rows if row["table"] == "difference")


def _rows(compared: Comparison) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(render.as_csv(compared))))


def test_the_change_between_two_runs_comes_before_their_figures(compared: Comparison) -> None:
    """It is what is looked for, on a phone too."""
    table = next(one for one in render.tables(compared) if one.title.startswith("The same hardware twice"))
    assert table.head[:2] == ("figure", "change")
    assert table.rows[0][1] == "+3.00 %"


def test_published_figures_stand_once_beside_all_results() -> None:
    """Two results do not need two tables; what was measured comes first, with shape or mode and batch."""
    results = [bench_result(*plain_steps(factor), label=label) for factor, label in ((1.0, "a"), (1.1, "b"))]
    compared = compare(results, against=published())
    found = [one for one in render.tables(compared) if one.title.startswith("Beside published")]

    assert len(found) == len({(one.quantity, one.precision) for one in compared.standings})
    (products,) = [one for one in found if "matmul bf16" in one.title]
    assert products.head == ("published for", "published", "a", "b", "batch", "source")
    assert products.rows[0][2:4] == ("600 TFLOP/s (8192x8192x8192)", "660 TFLOP/s (8192x8192x8192)")
    sheet = next(row for row in products.rows if row[0] == "H200 SXM")
    assert sheet[1:4] == ("989 TFLOP/s", "0.61", "0.67")
    assert [one.notes for one in found] == [(render.METHODS_DIFFER,), *[()] * (len(found) - 1)]


def test_a_table_for_a_file_has_no_escape_sequences(compared: Comparison) -> None:
    """It can be read in an editor."""
    text = render.plain_text(compared)
    assert "\x1b" not in text
    assert "[bold]" in text


def test_numbers_alone_are_set_flush_right() -> None:
    """Versions look like numbers and are none."""
    table = render.Table("t", ("a", "b", "c"), (("1,541.7", "2.21.0", ""), ("+0.50 %", "580.1", "")))
    assert [render.is_numeric(table, place) for place in range(3)] == [True, False, True]
