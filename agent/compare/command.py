"""``heatsoak compare``: results beside each other, ranked by speed, price, power and cost."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import click
from rich.console import Console

from agent.bench.model import BenchResult
from agent.bench.store import load
from agent.compare import render
from agent.compare.comparison import compare as compare_results
from agent.compare.model import Comparison, Picture
from agent.compare.prices import load_prices
from agent.compare.published import published
from agent.compare.render_html import page
from agent.errors import ConfigError
from agent.model.text import clean_label

Format = Literal["table", "markdown", "html", "csv", "json"]
FORMATS: Final[tuple[Format, ...]] = ("table", "markdown", "html", "csv", "json")
NO_MATPLOTLIB: Final = "pictures need matplotlib, which is not installed; pip install '.[report]' brings it"
NOTHING: Final = "give at least one result file of heatsoak bench, or a price list with --prices"


@click.command()
@click.argument("results", nargs=-1, type=click.Path(path_type=Path), metavar="[RESULT]...")
@click.option("--prices", "price_list", type=click.Path(path_type=Path), help="Price list in TOML: rank by price too.")
@click.option("--against", type=click.Choice(["published"]), help="Show what others published beside the results.")
@click.option("--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="What to print.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a new file, not to the terminal.")  # fmt: skip
@click.option("--plots", "folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write pictures (SVG) there, over none that is there.")  # fmt: skip
def compare(
    results: tuple[Path, ...],
    price_list: Path | None,
    against: str | None,
    form: Format,
    output: Path | None,
    folder: Path | None,
) -> int:
    """Compare result files of heatsoak bench, or published throughputs of a price list.

    Each ranking names its metric and what it compares; what differs between two results and may move their
    figures is said first. Exit codes: 0 compared; 2 usage, or a file that cannot be read or written, or is there
    already.

    \f
    Raises:
        click.UsageError: There is nothing to compare.
        ConfigError: A file cannot be read or written, or pictures cannot be drawn.
    """  # noqa: D301 - click ends its help at the form feed
    if not results and price_list is None:
        raise click.UsageError(NOTHING)
    if against and not results:
        raise click.UsageError(f"--against {against} needs a result file to show beside what was published")
    _refuse_present([output] if output else [], "file with -o")
    loaded = _load(results)
    prices = load_prices(price_list) if price_list else None
    compared = compare_results(loaded, prices, published() if against else None, file_names(results))
    if not results and not compared.rankings:
        raise ConfigError([f"{price_list}: no card has images_per_second, and no result file was given"])
    if folder is not None:
        _write_pictures(compared, folder)
    if form == "table" and output is None and sys.stdout.isatty():
        render.terminal(compared, Console())
    else:
        _give(_text(compared, form), output)
    return 0


def file_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """Return a short name for each file: the last part of its path, the whole path where several end alike."""
    ends = [path.name for path in paths]
    return tuple(clean_label(path.name if ends.count(path.name) == 1 else str(path), 500) for path in paths)


def _load(paths: tuple[Path, ...]) -> list[BenchResult]:
    """Return the results, or every file's fault at once."""
    answers = [_load_one(path) for path in paths]
    faults = [fault for answer in answers if isinstance(answer, ConfigError) for fault in answer.faults]
    if faults:
        raise ConfigError(faults)
    return [answer for answer in answers if isinstance(answer, BenchResult)]


def _load_one(path: Path) -> BenchResult | ConfigError:
    try:
        result = load(path)
    except ConfigError as error:
        return error
    if any(step.records for step in result.steps):
        return result
    return ConfigError([f"{clean_label(str(path), 500)}: holds no measurements; heatsoak bench --resume adds them"])


def _pictures(compared: Comparison) -> tuple[Picture, ...]:
    try:
        from agent.compare.plots import pictures
    except ImportError as error:
        raise ConfigError([f"{NO_MATPLOTLIB} ({error})"]) from error
    return pictures(compared)


def _write_pictures(compared: Comparison, folder: Path) -> None:
    files = {folder / f"{picture.name}.svg": picture.file for picture in _pictures(compared)}
    _refuse_present(list(files), "folder with --plots")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise _not_writable(folder, error) from error
    for path, text in files.items():
        _write(path, text)


def _text(compared: Comparison, form: Format) -> str:
    if form == "html":
        try:
            return page(compared, _pictures(compared))
        except ConfigError as error:
            return page(compared, (), without=str(error))
    writers = {
        "table": render.plain_text, "markdown": render.markdown, "csv": render.as_csv, "json": render.as_json,
    }  # fmt: skip
    return writers[form](compared)


def _give(text: str, output: Path | None) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    _write(output, text)


def _refuse_present(paths: Sequence[Path], another: str) -> None:
    faults = [f"{clean_label(str(path), 500)}: is there already; name another {another}" for path in paths
              if os.path.lexists(path)]  # fmt: skip
    if faults:
        raise ConfigError(faults)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise _not_writable(path, error) from error


def _not_writable(path: Path, error: OSError) -> ConfigError:
    return ConfigError([f"{clean_label(str(path), 500)}: cannot be written ({error.strerror}); give a path that can"])
