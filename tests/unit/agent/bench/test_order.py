"""What is asked for, what a file says, and what happens where they differ."""

import click
import msgspec
import pytest

from agent.bench.order import Begun, begun, label_text, settled
from agent.errors import ConfigError
from agent.size import limit_text
from tests.unit.agent.bench.results import bench_result


def test_what_is_given_counts_before_the_file_and_that_before_the_default() -> None:
    """The same said twice is no contradiction; no limit is an answer of the file too."""
    assert settled("extent", None, None, "quick") == "quick"
    assert settled("extent", None, "full", "quick") == "full"
    assert settled("extent", "full", None, "quick") == "full"
    assert settled("extent", "full", "full", "quick") == "full"
    assert settled("memory limit", None, 0, 7) == 0


def test_a_contradiction_is_refused_in_the_words_of_people() -> None:
    """Both sides are named."""
    with pytest.raises(ConfigError, match=r"^memory limit: none in the file, 4 GiB now; name another file with -o$"):
        settled("memory limit", 4 << 30, 0, 0, limit_text)


def test_a_file_says_what_it_was_begun_with() -> None:
    """An answer of --smoke is not to be gone on with."""
    stored = bench_result({}, memory_limit_bytes=5)
    assert begun(stored) == Begun("quick", "gpu", 5)
    assert begun(None) == Begun()
    with pytest.raises(ConfigError, match="--smoke"):
        begun(msgspec.structs.replace(stored, extent="smoke"))


def test_labels_stand_on_one_line() -> None:
    """Whatever a terminal would obey is refused."""
    assert label_text("H200 à Paris, 2") == "H200 à Paris, 2"
    for text in ("a\nb", "\x1b[31mred", "\udcff", "a\u202eb"):
        with pytest.raises(click.BadParameter, match="cannot be printed"):
            label_text(text)
