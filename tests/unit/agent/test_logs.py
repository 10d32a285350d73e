"""The log on standard error."""

import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.settings import LogSettings
from agent.logs import LibraryHandler, configure


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class FullDisk(io.StringIO):
    """A stream that takes nothing."""

    def write(self, text: str) -> int:
        raise OSError(28, "No space left on device", text[:0])


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Leave structlog and the root logger as they were."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    structlog.reset_defaults()
    root.setLevel(level)
    root.handlers = handlers


def only_line(stream: io.StringIO) -> dict[str, object]:
    """Return the one JSON line in ``stream``."""
    (line,) = stream.getvalue().splitlines()
    document: dict[str, object] = json.loads(line, parse_constant=pytest.fail)
    return document


def test_a_pipe_gets_json_with_time_level_and_logger() -> None:
    """Machines read one object a line, its time in UTC."""
    stream = io.StringIO()
    configure(LogSettings(), {}, stream)
    structlog.get_logger("probe").warning("probe_skipped", reason="busy", gpu=3)
    document = only_line(stream)
    assert str(document.pop("timestamp")).endswith("Z")
    assert document == {"level": "warning", "event": "probe_skipped", "reason": "busy", "gpu": 3, "logger": "probe"}


@pytest.mark.parametrize(
    ("form", "environ", "stream", "is_json"),
    [
        ("auto", {}, Terminal(), False),
        ("auto", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, Terminal(), True),
        ("auto", {"JOURNAL_STREAM": "8:1"}, io.StringIO(), True),
        ("json", {}, Terminal(), True),
        ("console", {}, io.StringIO(), False),
    ],
)
def test_people_get_text_and_machines_json(
    form: str, environ: dict[str, str], stream: io.StringIO, *, is_json: bool
) -> None:
    """A terminal outside a pod shows text; the configuration can say otherwise."""
    configure(LogSettings(format=form), environ, stream)  # type: ignore[arg-type]
    structlog.get_logger().info("started")
    assert stream.getvalue().startswith("{") is is_json
    assert "started" in stream.getvalue()


def test_only_a_terminal_gets_colours() -> None:
    """Escape sequences go to terminals alone, and not where NO_COLOR is set."""
    for stream, environ, coloured in (
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (io.StringIO(), {}, False),
    ):
        configure(LogSettings(format="console"), environ, stream)
        structlog.get_logger().info("started")
        assert ("\x1b[" in stream.getvalue()) is coloured


def test_a_lower_level_is_not_written_and_a_reload_changes_that() -> None:
    """A logger made before follows the new level."""
    stream = io.StringIO()
    configure(LogSettings(), {}, stream)
    log = structlog.get_logger("loop")
    log.debug("tick")
    assert stream.getvalue() == ""
    configure(LogSettings(level="debug"), {}, stream)
    log.debug("tick")
    assert only_line(stream)["event"] == "tick"


def test_what_libraries_log_is_an_event_too() -> None:
    """Warnings from `logging` come out in the same form, also after a second configuration, and once."""
    stream = io.StringIO()
    configure(LogSettings(), {}, stream)
    configure(LogSettings(), {}, stream)
    logging.getLogger("apscheduler.scheduler").warning("Run time of job %s was missed", "x")
    logging.getLogger("apscheduler.scheduler").info("Scheduler started")
    document = only_line(stream)
    assert (document["event"], document["logger"]) == ("library_message", "apscheduler.scheduler")
    assert document["message"] == "Run time of job x was missed"
    assert sum(isinstance(handler, LibraryHandler) for handler in logging.getLogger().handlers) == 1


def test_an_exception_stays_in_its_line() -> None:
    """A traceback is one field."""
    stream = io.StringIO()
    configure(LogSettings(), {}, stream)
    structlog.get_logger().error("failed", exc_info=ValueError("no\udcff"))
    assert "ValueError: no\ufffd" in str(only_line(stream)["exception"])


def test_a_stream_that_takes_nothing_costs_nobody_anything() -> None:
    """A full disk or a closed stream does not reach the caller."""
    closed = io.StringIO()
    configure(LogSettings(), {}, closed)
    closed.close()
    structlog.get_logger().info("started")
    configure(LogSettings(), {}, FullDisk())
    structlog.get_logger().info("started")


VALUES = st.recursive(
    st.text(st.characters()) | st.floats() | st.integers() | st.none() | st.binary(max_size=4) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(value=VALUES, form=st.sampled_from(["json", "console"]))
def test_no_value_breaks_a_line(value: object, form: str) -> None:
    """Surrogates, control characters, NaN: one line that encodes, and in JSON one that parses strictly."""
    stream = io.StringIO()
    configure(LogSettings(format=form), {}, stream)  # type: ignore[arg-type]
    structlog.get_logger().info("seen", value=value)
    assert len(stream.getvalue().splitlines()) == 1
    assert stream.getvalue().rstrip("\n").isprintable()
    stream.getvalue().encode("utf-8")
    if form == "json":
        document = only_line(stream)
        json.dumps(document, ensure_ascii=False).encode("utf-8")


def test_rich_stays_out_of_the_process_and_can_still_be_imported() -> None:
    """Commands that print tables load it themselves."""
    script = "import agent.logs, sys; assert 'rich' not in sys.modules; import rich.table"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
