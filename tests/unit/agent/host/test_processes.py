"""Processes that hold a GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.host.cgroups import Cgroups
from agent.host.cpu import TICKS_PER_S
from agent.host.files import Tree
from agent.host.processes import Processes, ProcessGoneError, parse_stat
from agent.model.process import ProcessReading
from tests.support.clock import FakeClock
from tests.support.trees import make_tree

NO_CGROUPS = Cgroups(Tree("/nowhere"), Tree("/nowhere"))


def stat_line(pid: int, name: str = "python3", state: str = "S", cpu: int = 100, ended: int = 0) -> str:
    """Return a stat line: CPU ticks of its own, half of them system time, and of children that ended."""
    return f"{pid} ({name}) {state} 1 1 1 0 -1 0 0 0 0 0 {cpu // 2} {cpu // 2} {ended} 0 20 0 2 0 4200 0 0\n"


def process(pid: int, *, cpus: str = "0-15", children: str = "", **stat: object) -> dict[str, str]:
    """Return the files of a process with one thread."""
    line = stat_line(pid, **stat)  # type: ignore[arg-type]
    return {
        f"{pid}/stat": line,
        f"{pid}/status": f"Name:\tx\nCpus_allowed_list:\t{cpus}\n",
        f"{pid}/task/{pid}/stat": line,
        f"{pid}/task/{pid}/children": children,
    }


def processes(root: Path, *files: dict[str, str]) -> Processes:
    """Return the reader over these files."""
    host = {"stat": "cpu 1 0 0 400 100 0 0 0\ncpu0 1 0 0 4 1\ncpu1 1 0 0 4 1\n"}
    return Processes(
        make_tree(root, {name: text for group in (host, *files) for name, text in group.items()}),
        NO_CGROUPS,
        FakeClock(50.0),
    )


def test_a_process_is_read_with_its_threads(tmp_path: Path) -> None:
    """CPU seconds, affinity, states of threads, start time."""
    threads = {"7/task/8/stat": stat_line(8, "decode", "D", cpu=600), "7/task/9/stat": stat_line(9, "tf", "R", cpu=20)}
    reading = processes(tmp_path, process(7, cpu=800, ended=50, state="R", cpus="0-3"), threads).read(
        7, ("GPU-a",), frozenset({7})
    )
    assert reading.cpu_s == 850 / TICKS_PER_S
    assert reading.started_s == 4200 / TICKS_PER_S
    assert (reading.pid, reading.gpus, reading.taken_monotonic_s, reading.name) == (7, ("GPU-a",), 50.0, "python3")
    assert (reading.allowed_cores, reading.threads, reading.main_state) == (4, 3, "R")
    assert (reading.running_threads, reading.blocked_threads) == (2, 1)
    assert reading.busiest_thread_cpu_s == 800 / TICKS_PER_S


def test_descendants_count_unless_they_hold_a_gpu(tmp_path: Path) -> None:
    """Workers and theirs are part of it; another holder is not, nor one that ended meanwhile."""
    reader = processes(
        tmp_path,
        process(7, cpu=100, children="8 9 99 7"),
        process(8, cpu=20, children="10", state="R"),
        process(9, cpu=5000, children="11"),
        process(10, cpu=2, ended=6),
        process(11, cpu=9000),
    )
    reading = reader.read(7, (), frozenset({7, 9}))
    assert reading.cpu_s == (100 + 20 + 2 + 6) / TICKS_PER_S
    assert (reading.threads, reading.running_threads) == (3, 1)


def test_a_report_leaves_out_who_is_gone(tmp_path: Path) -> None:
    """A pid may end between two looks; the host's figures stand beside the rest."""
    report = processes(tmp_path, process(7)).report({7: ("GPU-a", "GPU-b"), 8: ("GPU-a",)})
    assert [(row.pid, row.gpus) for row in report.processes] == [(7, ("GPU-a", "GPU-b"))]
    assert (report.host.cores, report.host.idle_s, report.host.io_pressure_s) == (2, 500 / TICKS_PER_S, None)


@pytest.mark.parametrize(
    "files", [{}, {"7/stat": ""}, {"7/stat": stat_line(7)}, {**process(7), "7/status": "Name: x\n"}]
)
def test_what_cannot_be_read_is_gone(tmp_path: Path, files: dict[str, str]) -> None:
    """Ended before, or half-way through."""
    with pytest.raises(ProcessGoneError, match="process 7"):
        processes(tmp_path, files).read(7, (), frozenset())


def test_a_name_may_hold_anything() -> None:
    """Parentheses, blanks and line ends neither shift the numbers nor reach a label."""
    stat = parse_stat(stat_line(7, "a) R (b\n\x1b c", "S", cpu=10))
    assert (stat.name, stat.state, stat.own_cpu_s) == ("a) R (b\ufffd\ufffd c", "S", 10 / TICKS_PER_S)


@given(st.text())
def test_any_text_is_a_stat_or_refused(text: str) -> None:
    """Nothing but ValueError is raised."""
    try:
        stat = parse_stat(text)
    except ValueError:
        return
    assert stat.name.isprintable()


def test_a_real_process_with_a_child_is_read() -> None:
    """The kernel under the tests: a child that burns CPU counts, and once ended it still does."""
    answer = "print(flush=True); input()"
    burn = f"import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n{answer}"
    parent = f"import subprocess, sys; input(); subprocess.run([sys.executable, '-c', {burn!r}]); {answer}"
    reader = Processes(Tree("/proc"), NO_CGROUPS, FakeClock())
    with subprocess.Popen([sys.executable, "-c", parent], stdin=-1, stdout=-1, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def read() -> ProcessReading:
            return reader.read(process.pid, (), frozenset({process.pid}))

        before = read()
        process.stdin.write(b"\n")
        process.stdout.readline()
        living = read()
        process.stdin.write(b"\n")
        process.stdout.readline()
        ended = read()
        process.stdin.write(b"\n")
    assert living.cpu_s - before.cpu_s >= 0.25
    assert ended.cpu_s >= living.cpu_s
    assert (before.threads, living.threads, ended.threads) == (1, 2, 1)
    assert 1 <= before.allowed_cores <= (os.cpu_count() or 1)
