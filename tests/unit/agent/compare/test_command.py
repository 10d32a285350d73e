"""``heatsoak compare`` as it is called: forms, files, faults."""

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from agent.bench.store import save
from agent.compare.command import NO_MATPLOTLIB, compare
from agent.errors import ConfigError
from tests.support.results import bench_result, machine, plain_steps

ROOT = Path(__file__).parents[4]


@pytest.fixture
def stored(tmp_path: Path) -> tuple[str, str]:
    """Two made-up results in files."""
    for name, result in (
        ("a", bench_result()),
        ("b", bench_result(*plain_steps(1.2), label="made up B", on=machine(tensorflow="2.9.0"))),
    ):
        save(result, tmp_path / f"{name}.json")
    return str(tmp_path / "a.json"), str(tmp_path / "b.json")


def called(*arguments: str) -> Result:
    """Return what a call gives."""
    return CliRunner().invoke(compare, list(arguments), standalone_mode=True)


def test_two_files_are_ranked_with_their_cautions(stored: tuple[str, str]) -> None:
    """The plainest call."""
    done = called(*stored)

    assert done.exit_code == 0
    assert "TensorFlow: 2.21.0 (made up A) against 2.9.0 (made up B)" in done.output
    assert "Rank by throughput, images/s: the best configuration that all have" in done.output
    assert " resnet50 bf16 xla 224 px, batch 128, method 1 │    1 │ made up B │" in done.output


@pytest.mark.parametrize(
    ("form", "start"),
    [("markdown", "# Comparison"), ("html", "<!doctype html>"), ("csv", "table,label"), ("json", "{"), ("table", "Be")],
)
def test_each_form_can_be_written_to_a_file(stored: tuple[str, str], tmp_path: Path, form: str, start: str) -> None:
    """Nothing is printed then."""
    target = tmp_path / "out"
    done = called(*stored, "--format", form, "-o", str(target))

    assert (done.exit_code, done.output) == (0, "")
    assert target.read_text(encoding="utf-8").startswith(start)


@pytest.mark.parametrize("form", ["table", "markdown", "html", "csv", "json"])
def test_no_file_is_written_over(stored: tuple[str, str], form: str) -> None:
    """Hours of measurement do not fall to a slip of the hand: bench and record refuse as well."""
    before = Path(stored[0]).read_bytes()
    done = called(*stored, "--format", form, "-o", stored[0])

    assert isinstance(done.exception, ConfigError)
    assert done.exception.faults == (f"{stored[0]}: is there already; name another file with -o",)
    assert Path(stored[0]).read_bytes() == before


def test_no_picture_is_written_over(stored: tuple[str, str], tmp_path: Path) -> None:
    """Nor are others written beside those that are there."""
    folder = tmp_path / "p"
    folder.mkdir()
    (folder / "throughput-vgg16.svg").write_text("mine", encoding="utf-8")
    done = called(*stored, "--plots", str(folder))

    assert "throughput-vgg16.svg: is there already; name another folder with --plots" in str(done.exception)
    assert [path.read_text(encoding="utf-8") for path in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize("option", ["-o", "--plots"])
def test_a_missing_folder_is_not_made(stored: tuple[str, str], tmp_path: Path, option: str) -> None:
    """It is a misspelt one more often than a new one."""
    done = called(*stored, option, str(tmp_path / "mising" / "out"))
    assert "out: cannot be written (No such file or directory)" in str(done.exception)
    assert not (tmp_path / "mising").exists()


def test_results_of_one_label_are_told_apart_by_their_files(stored: tuple[str, str], tmp_path: Path) -> None:
    """The default label is the same on every card of a kind."""
    (tmp_path / "deep").mkdir()
    for name in ("a.json", "c.json"):
        save(bench_result(), tmp_path / "deep" / name)

    for form in ("table", "markdown", "html", "csv", "json"):
        output = called(*stored, str(tmp_path / "deep" / "c.json"), "--format", form).output
        assert "made up A (a.json)" in output
        assert "made up A (c.json)" in output
        assert "made up B (b.json)" not in output
    assert f"made up A ({stored[0]})" in called(stored[0], str(tmp_path / "deep" / "a.json")).output


def test_a_result_without_measurements_is_refused(stored: tuple[str, str], tmp_path: Path) -> None:
    """There is nothing in it to compare."""
    save(msgspec.structs.replace(bench_result(), steps=()), tmp_path / "none.json")
    done = called(stored[0], str(tmp_path / "none.json"))
    assert "none.json: holds no measurements; heatsoak bench --resume adds them" in str(done.exception)


def test_results_are_optional_in_the_help() -> None:
    """A price list alone is enough."""
    assert "[RESULT]..." in called("--help").output


def test_a_table_that_goes_to_no_terminal_is_not_wrapped(stored: tuple[str, str]) -> None:
    """A line says a whole thing, for grep and for the next editor; the first one says something."""
    lines = called(*stored).output.splitlines()

    assert lines[0] == "Before you compare"
    (told,) = [line for line in lines if line.startswith("  ! TensorFlow: 2.21.0")]
    assert told.endswith("faster or slower for that alone")
    assert all(line == line.rstrip() for line in lines)


def test_pictures_are_written_and_stand_in_the_page(stored: tuple[str, str], tmp_path: Path) -> None:
    """One file for each; the page holds them itself."""
    done = called(*stored, "--plots", str(tmp_path / "p"), "--format", "html")

    assert done.exit_code == 0
    assert {path.name for path in (tmp_path / "p").iterdir()} >= {"throughput-resnet50.svg", "memory-vgg16.svg"}
    assert done.output.count("<svg") == len(list((tmp_path / "p").iterdir()))


def test_published_figures_come_on_demand(stored: tuple[str, str]) -> None:
    """And say that methods differ."""
    assert "methods differ" in called(stored[0], "--against", "published", "--format", "markdown").output
    assert "methods differ" not in called(stored[0], "--format", "markdown").output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "at least one result file"),
        (("--against", "published"), "give at least one result file"),
        (("--format", "pdf"), "pdf"),
        (("-o", "/"), "'/' is a directory"),
    ],
)
def test_wrong_usage_is_told(arguments: tuple[str, ...], told: str) -> None:
    """Exit code 2 and what would be right."""
    done = called(*arguments)
    assert done.exit_code == 2
    assert told in done.output


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("missing.json", None, "missing.json: No such file"),
        ("text.json", "no json", "text.json: "),
        ("other.json", '{"kind": "other", "schema_version": 1}', "other.json: "),
        ("newer.json", '{"kind": "heatsoak-bench", "schema_version": 99}', "result of schema 99"),
        ("half.json", '{"kind": "heatsoak-bench", "schema_version": 1}', "half.json: "),
    ],
)
def test_each_bad_result_file_is_one_line(
    stored: tuple[str, str], tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    """All bad files are told at once, with their names."""
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    done = called(stored[0], str(tmp_path / name), str(tmp_path / "second"))

    assert isinstance(done.exception, ConfigError)
    assert done.exception.exit_code == 2
    assert len(done.exception.faults) == 2
    assert told in done.exception.faults[0]


def test_a_price_list_without_throughputs_needs_results(tmp_path: Path) -> None:
    """There would be nothing to rank."""
    prices = tmp_path / "p.toml"
    prices.write_text('currency = "EUR"\n[[card]]\nname = "x"\nprice = 1\n', encoding="utf-8")
    assert "no card has images_per_second" in str(called("--prices", str(prices)).exception)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [(("--plots", "pictures"), 2, NO_MATPLOTLIB), (("--format", "html"), 0, NO_MATPLOTLIB.replace("'", "&#39;"))],
)
def test_without_matplotlib_one_line_says_what_to_install(
    stored: tuple[str, str], tmp_path: Path, arguments: tuple[str, ...], code: int, told: str
) -> None:
    """Pictures asked for are an error, those of a page are explained there; numbers need no extra."""
    script = "import sys; sys.modules['matplotlib'] = None; import heatsoak; heatsoak.main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "compare", *stored, *arguments],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == code
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_json_is_one_document(stored: tuple[str, str]) -> None:
    """It can be piped on."""
    assert json.loads(called(*stored, "--format", "json").output)["results"] == ["made up A", "made up B"]
