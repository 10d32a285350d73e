"""Badly behaved children through the real runner: each ends on time, under its own word, with nothing left."""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from agent.clock import SystemClock
from agent.config.settings import ProbeSettings
from agent.model.probe import ChildEvent, Phase, ProbeRecord
from agent.model.snapshot import Card
from agent.probes.child import TAIL_BYTES
from agent.probes.runner import ProbeRunner
from tests.integration.probes.conftest import CARD_UUID, STUB, MakeRunner, job
from tests.integration.probes.sources import RESTING, LiveSource


def nobody(_event: ChildEvent) -> None:
    """Take no notice."""


def never() -> str:
    """Never abort."""
    return ""


def words(records: tuple[ProbeRecord, ...]) -> list[tuple[str, str]]:
    """Return status and reason of each record."""
    return [(record.result.status, record.result.reason) for record in records]


def daemon_pid(logs: list[Any]) -> int:
    """Return the process id that a child printed before its end."""
    output = next(entry["output"] for entry in logs if "output" in entry)
    return int(output.split("daemon ")[1].split()[0])


def alive(pid: int) -> bool:
    """Return whether a process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_good_child_answers_every_request(make_runner: MakeRunner) -> None:
    """Values, environment and cost arrive."""
    outcome = make_runner().run(job(probes=2), never, nobody)
    assert words(outcome.records) == [("ok", ""), ("ok", "")]
    assert outcome.records[0].environment.tensorflow == "2.21.0"
    assert outcome.cpu_s > 0


@pytest.mark.parametrize(
    ("behaviour", "status", "reason"),
    [
        ("abort", "error", "crashed:SIGABRT"),
        ("kill", "error", "crashed:SIGKILL"),
        ("exit_137", "error", "exit_code:137"),
        ("silent", "error", "exit_code:0"),
        ("no_result", "error", "bad_result"),
        ("half_line", "error", "bad_result"),
        ("half_line_crash", "error", "crashed:SIGABRT"),
        ("nan", "error", "bad_result"),
        ("invalid_utf8", "error", "bad_result"),
        ("long_line", "error", "bad_result"),
        ("unknown_reason", "error", "bad_result"),
        ("old_protocol", "error", "bad_result"),
        ("grandchild", "error", "exit_code:3"),
        ("no_tensorflow", "error", "tensorflow_missing"),
        ("noise", "ok", ""),
    ],
)
def test_each_end_has_its_word(make_runner: MakeRunner, behaviour: str, status: str, reason: str) -> None:
    """However a child ends, its request has one record that says how, within seconds."""
    start_s = time.monotonic()
    outcome = make_runner().run(job(behaviour), never, nobody)
    assert words(outcome.records) == [(status, reason)]
    assert time.monotonic() - start_s < 20


def test_answers_before_a_crash_count(make_runner: MakeRunner) -> None:
    """The crash costs only what was not answered."""
    outcome = make_runner().run(job("first_only", probes=2), never, nobody)
    assert words(outcome.records) == [("ok", ""), ("error", "crashed:SIGABRT")]


@pytest.mark.parametrize("behaviour", ["hang", "hang_deaf"])
def test_deadline_ends_a_child_deaf_or_not(make_runner: MakeRunner, behaviour: str) -> None:
    """SIGTERM first, SIGKILL two seconds later."""
    start_s = time.monotonic()
    outcome = make_runner(deadline_s=1.0).run(job(behaviour, probes=2), never, nobody)
    assert words(outcome.records) == [("timeout", "deadline")] * 2
    assert time.monotonic() - start_s < 15


def test_child_that_does_not_end_after_its_last_line_is_ended(make_runner: MakeRunner) -> None:
    """Its results count."""
    start_s = time.monotonic()
    assert words(make_runner(deadline_s=2.0).run(job("slow_tail"), never, nobody).records) == [("ok", "")]
    assert time.monotonic() - start_s < 15


def test_what_shares_the_childs_session_dies_with_it(make_runner: MakeRunner) -> None:
    """A grandchild that holds standard output blocks nothing and does not live on."""
    with capture_logs() as logs:
        make_runner().run(job("grandchild"), never, nobody)
    assert not alive(daemon_pid(logs))


def test_broken_environment_is_logged_with_what_the_child_said(make_runner: MakeRunner) -> None:
    """The child ends well, yet without a value: its output explains."""
    with capture_logs() as logs:
        make_runner().run(job("no_tensorflow"), never, nobody)
    (failed,) = [entry for entry in logs if entry["event"] == "probe_failed"]
    assert failed["reason"] == "tensorflow_missing"
    assert failed["output"] == "not here\n"


def test_aborted_runs_are_no_failure_to_log(make_runner: MakeRunner) -> None:
    """Making room is what a guest does."""
    with capture_logs() as logs:
        make_runner().run(job("hang"), lambda: "tenant_arrived", nobody)
    assert [entry for entry in logs if entry["log_level"] == "warning"] == []


def test_daemons_that_left_session_and_parent_are_found(make_runner: MakeRunner) -> None:
    """The child's mark in their environment gives them away."""
    runner = make_runner()
    with capture_logs() as logs:
        assert words(runner.run(job("double_fork"), never, nobody).records) == [("ok", "")]
    killed = next(entry["pids"] for entry in logs if entry["event"] == "probe_descendants_killed")
    assert killed
    assert not any(alive(pid) for pid in killed)


def test_output_is_kept_to_a_bounded_tail(make_runner: MakeRunner) -> None:
    """Of megabytes of noise the last words remain, in one log field, whatever their encoding."""
    with capture_logs() as logs:
        make_runner().run(job("exit_137"), never, nobody)
    assert next(entry["output"] for entry in logs if entry["event"] == "probe_failed") == "Killed\n"
    assert TAIL_BYTES == 65536


def test_abort_ends_even_a_deaf_child_within_a_second(make_runner: MakeRunner) -> None:
    """Who must wait for the card waits a moment only."""
    asked = threading.Event()
    asked_s: list[float] = []

    def abort() -> str:
        if asked.is_set():
            asked_s.append(time.monotonic())
        return "tenant_arrived" if asked.is_set() else ""

    outcome = make_runner().run(job("hang_deaf"), abort, lambda _event: asked.set())
    assert words(outcome.records) == [("aborted", "tenant_arrived")]
    assert time.monotonic() - asked_s[0] < 1.0


def test_child_sees_only_what_was_meant_for_it(make_runner: MakeRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its environment is built from nothing, its manners are good, its directory is its own and gone after."""
    monkeypatch.setenv("HEATSOAK_TEST_SECRET", "x")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    shown = show(make_runner())
    assert "HEATSOAK_TEST_SECRET" not in shown["env"]
    assert "PYTHONPATH" not in shown["env"]
    assert shown["env"]["CUDA_VISIBLE_DEVICES"] == ""
    assert shown["isolated"] == 1
    assert (shown["nice"], shown["core"]) == (10, [0, 0])
    assert shown["oom_score_adj"] == 1000
    assert shown["cwd"] == shown["env"]["HOME"]
    assert not Path(shown["cwd"]).exists()


def test_child_is_told_card_threads_and_caches(make_runner: MakeRunner, tmp_path: Path) -> None:
    """One visible card, by UUID, with its PCI address to check against."""
    shown = show(make_runner(source=LiveSource()), on_card=True)
    assert shown["env"]["CUDA_VISIBLE_DEVICES"] == CARD_UUID
    spec = shown["spec"]
    assert (spec["version"], spec["device"], spec["gpu_uuid"]) == (1, "gpu", CARD_UUID)
    assert (spec["pci_bus_id"], spec["threads"]) == ("0000:1b:00.0", 2)
    assert Path(spec["cache_dir"]).is_relative_to(tmp_path)


def show(runner: ProbeRunner, *, on_card: bool = False) -> dict[str, Any]:
    """Return what the child printed of itself, taken from the log of a run that then fails."""
    with capture_logs() as logs:
        runner.run(job("show_and_fail", card=RESTING if on_card else None), never, nobody)
    output = next(entry["output"] for entry in logs if entry["event"] == "probe_failed")
    shown: dict[str, Any] = json.loads(output)
    return shown


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [("wrong_uuid", "wrong_device"), ("on_cpu", "ran_on_cpu")],
)
def test_value_from_elsewhere_is_no_value(make_runner: MakeRunner, behaviour: str, reason: str) -> None:
    """A number from another device is discarded."""
    outcome = make_runner(source=LiveSource()).run(job(behaviour, card=RESTING), never, nobody)
    assert words(outcome.records) == [("error", reason)]
    assert outcome.records[0].result.value is None


def test_card_is_sampled_ten_times_a_second(make_runner: MakeRunner) -> None:
    """A window of a second and a half holds its circumstances."""
    outcome = make_runner(source=LiveSource()).run(job("slow", card=RESTING), never, nobody)
    (record,) = outcome.records
    assert record.attribution is not None
    assert record.attribution.host_cpu_share is not None
    assert 0.0 <= record.attribution.host_cpu_share <= 1.0
    assert record.attribution.samples >= 12
    assert record.attribution.sm_clock_median_hertz == 1.5e9
    assert record.result.figures["value_per_watt"] == pytest.approx(6.6e14 / 650.0)
    assert record.judged


def test_tenant_ends_the_run_or_contends_it(make_runner: MakeRunner) -> None:
    """Scheduled runs make room; a run that was asked for goes on and says so."""
    source = LiveSource()

    def arrive(event: ChildEvent) -> None:
        if isinstance(event, Phase):
            source.add_process(1)

    def strangers(card: Card) -> list[int]:
        return [process.pid for process in card.processes or ()]

    runner = make_runner(source=source, tenants=strangers)
    start_s = time.monotonic()
    yielding = runner.run(job("long", card=RESTING), never, arrive)
    assert words(yielding.records) == [("aborted", "tenant_arrived")]
    assert time.monotonic() - start_s < 10
    source.show(RESTING)
    (record,) = runner.run(job("slow", card=RESTING, yield_to_tenants=False), never, arrive).records
    assert record.result.status == "ok"
    assert record.attribution is not None
    assert record.attribution.contended
    assert not record.judged


def test_lost_card_and_lost_sight_end_the_run(make_runner: MakeRunner) -> None:
    """A card off the bus at once, a silent reader after some seconds."""
    source = LiveSource()
    runner = make_runner(source=source)
    source.show(msgspec.structs.replace(RESTING, lost="GPU_IS_LOST"))
    assert words(runner.run(job("long", card=RESTING), never, nobody).records) == [("aborted", "gpu_lost")]
    source.show(None)
    assert words(runner.run(job("long", card=RESTING), never, nobody).records) == [("aborted", "reader_down")]


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false", "/etc/passwd"])
def test_interpreter_that_cannot_be_used_is_said(tmp_path: Path, python: str) -> None:
    """Missing, no Python, not executable: one word, with the path."""
    runner = ProbeRunner(
        ProbeSettings(python=python), None, SystemClock(), tmp_path, tenants=lambda _card: (), workloads=STUB
    )
    (record,) = runner.run(job(), never, nobody).records
    assert (record.result.status, record.result.reason) == ("error", "interpreter_missing")
    assert python in record.result.detail


def test_state_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """Trouble on our side is an error too, not an exception."""
    (tmp_path / "file").write_text("")
    runner = ProbeRunner(
        ProbeSettings(), None, SystemClock(), tmp_path / "file", tenants=lambda _card: (), workloads=STUB
    )
    (record,) = runner.run(job(), never, nobody).records
    assert (record.result.status, record.result.reason.partition(":")[0]) == ("error", "failed")


def test_package_directories_reach_a_foreign_interpreter(tmp_path: Path) -> None:
    """Packages installed aside are found, and nothing of the caller's environment with them."""
    (tmp_path / "site").mkdir()
    settings = ProbeSettings(python=sys.executable, python_path=(str(tmp_path / "site"),))
    runner = ProbeRunner(settings, None, SystemClock(), tmp_path / "state", tenants=lambda _card: (), workloads=STUB)
    assert show(runner)["env"]["PYTHONPATH"] == str(tmp_path / "site")


def test_file_descriptors_do_not_leak(make_runner: MakeRunner) -> None:
    """Good and bad ends close what they opened."""
    runner = make_runner()
    runner.run(job(), never, nobody)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for behaviour in ("abort", "silent", "long_line", ""):
        runner.run(job(behaviour), never, nobody)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
