"""``heatsoak bench`` as a process, on two played cards with stub children, on none, and on the CPU."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import psutil
import pytest

from agent.bench import analysis
from agent.bench.points import points
from agent.bench.store import load, save
from tests.support.agent import ROOT, eventually
from tests.support.fakenvml import fake_env, write_scenario
from tests.support.stub_interpreter import StubInterpreter

Environ = dict[str, str]


def command(*arguments: str) -> list[str]:
    """Return the command line."""
    return [sys.executable, str(ROOT / "heatsoak.py"), "bench", *arguments]


def bench(*arguments: str, environ: Environ) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    return subprocess.run(command(*arguments), env=environ, capture_output=True, text=True, timeout=110, check=False)


@pytest.fixture
def stub(tmp_path: Path) -> StubInterpreter:
    """Return an interpreter whose children train on cards of 300 images."""
    return StubInterpreter(tmp_path, "bench")


@pytest.fixture
def environ(tmp_path: Path, stub: StubInterpreter) -> Environ:
    """Return the environment of a machine with two cards."""
    return {**fake_env("h200x2"), **stub.settings(), "HEATSOAK_STATE_DIR": str(tmp_path / "state")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the result goes, a folder of its own."""
    folder = tmp_path / "results"
    folder.mkdir()
    return folder / "r.json"


def began(path: Path) -> bool:
    """Return whether a benchmark holds the file."""
    return path.with_name(f".{path.name}.lock").exists()


def test_full_plan_on_two_cards(environ: Environ, path: Path) -> None:
    """Largest batches found, scaling over both, nothing that names a card."""
    done = bench("--full", "-o", str(path), "--label", "two cards", environ=environ)
    assert done.returncode == 0, done.stderr
    result = load(path)
    assert (result.complete, result.extent, result.label) == (True, "full", "two cards")
    assert (result.machine.driver, result.machine.tensorflow) == ("580.159.04", "2.21.0")
    assert [card.name for card in result.machine.cards] == ["NVIDIA H200"] * 2
    assert len(result.machine.topology) == 1
    largest = {str(curve.setting): curve.largest.batch for curve in analysis.curves(points(result))}
    assert largest["resnet50 bf16 graph 224 px"] == 288
    assert largest["vgg16 tf32 graph 224 px"] == 144
    (spread, _) = analysis.scaling(points(result))
    assert spread.efficiency == pytest.approx(0.98)
    ooms = [r.result for step in result.steps for r in step.records if r.result.reason.startswith("oom")]
    assert ooms
    assert "GPU-" not in path.read_text()
    assert {record.uuid for step in result.steps for record in step.records} == {result.machine.cards[0].id}
    limited = next(step for step in result.steps if step.name.startswith("limit/"))
    assert limited.memory_limit_bytes == 16 << 30
    assert "Scaling" in done.stdout
    assert "left" in done.stderr


def test_an_interrupted_run_goes_on_where_it_stopped(environ: Environ, path: Path, stub: StubInterpreter) -> None:
    """Ctrl-C ends the child, keeps what is done and says how to go on; no step is made twice."""
    running = subprocess.Popen(command("-o", str(path)), env=environ, stderr=subprocess.PIPE, text=True)
    try:
        eventually(lambda: path.exists() and load(path).steps, "a first step")
        stub.behave("long")
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=30)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130, said
    assert "heatsoak: interrupted in " in said
    assert "shutting_down" not in said
    assert "the same command with --resume goes on" in said
    before = load(path)
    assert before.steps
    assert not before.complete
    stub.behave("bench")
    refused = bench("-o", str(path), environ=environ)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    assert load(path) == before
    done = bench("-o", str(path), "--resume", environ=environ)
    assert done.returncode == 0, done.stderr
    after = load(path)
    assert after.complete
    assert after.steps[: len(before.steps)] == before.steps
    assert len({step.name for step in after.steps}) == len(after.steps)


def test_sigterm_keeps_what_is_done(environ: Environ, path: Path, stub: StubInterpreter) -> None:
    """As a batch system ends jobs; without a step that is nothing, and no file bars the next try."""
    stub.behave("long")
    running = subprocess.Popen(command("-o", str(path)), env=environ, stderr=subprocess.PIPE, text=True)
    eventually(lambda: began(path), "a lock beside the file")
    time.sleep(3.0)
    running.terminate()
    _, said = running.communicate(timeout=30)
    assert running.returncode == 143, said
    assert said.splitlines() == [
        "heatsoak: interrupted in cold/graph",
        "heatsoak: nothing was measured, so no file was written",
    ]
    assert list(path.parent.iterdir()) == []


def change(path: Path, **changes: object) -> None:
    """Change a stored machine."""
    result = load(path)
    machine = msgspec.structs.replace(result.machine, **changes)
    save(msgspec.structs.replace(result, machine=machine, complete=False, steps=result.steps[:1]), path)


def test_a_result_of_another_machine_is_not_gone_on_with(environ: Environ, path: Path) -> None:
    """Card, driver, limit and extent are compared before, TensorFlow as soon as a child says its version."""
    assert bench("-o", str(path), "--gpu", "1", environ=environ).returncode == 0
    change(path)
    stored = path.read_bytes()
    resume = ("-o", str(path), "--resume")
    for arguments, word in (
        (("--gpu", "0"), "cards: 1 NVIDIA H200"),
        (("--gpu", "1", "--memory-limit", "16GiB"), "memory limit: none in the file, 16 GiB now"),
        (("--gpu", "1", "--full"), "extent: quick in the file, full now"),
        (("--device", "cpu"), "device: gpu in the file, cpu now"),
    ):
        refused = bench(*resume, *arguments, environ=environ)
        assert (refused.returncode, word in refused.stderr) == (2, True), refused.stderr
    assert path.read_bytes() == stored
    change(path, tensorflow="2.9.0")
    refused = bench(*resume, "--gpu", "1", environ=environ)
    assert refused.returncode == 2
    assert "TensorFlow: 2.9.0 in the file, 2.21.0 now" in refused.stderr
    assert len(load(path).steps) == 1


def test_a_card_in_use_stops_the_benchmark(environ: Environ, path: Path, tmp_path: Path) -> None:
    """Exit code 11 with the reason; MIG is no state to wait out."""
    scenario = write_scenario(tmp_path / "mig.scenario", ["include mig"])
    done = bench("-o", str(path), environ={**environ, "FAKE_NVML_SCENARIO": str(scenario)})
    assert done.returncode == 11, done.stderr
    assert "heatsoak: cold/graph could not be measured: mig_mode: " in done.stderr
    assert "  -> end MIG mode" in done.stderr
    assert not path.exists()


def test_a_broken_environment_says_what_to_do_and_bars_nothing(
    environ: Environ, path: Path, stub: StubInterpreter
) -> None:
    """Going on would fail in the same way, so nobody is sent there before it is cured."""
    stub.behave("no_tensorflow")
    done = bench("-o", str(path), "--gpu", "0", environ=environ)
    assert done.returncode == 11, done.stderr
    assert "cold/graph could not be measured: tensorflow_missing: " in done.stderr
    assert "  -> install TensorFlow: `pip install" in done.stderr
    assert "--resume" not in done.stderr
    stub.behave("bench")
    cured = bench("-o", str(path), "--gpu", "0", environ=environ)
    assert cured.returncode == 0, cured.stderr


def test_going_on_takes_the_plan_of_the_file(environ: Environ, path: Path) -> None:
    """Nobody has to remember whether it was begun as a full one, or under which limit."""
    done = bench("--full", "--gpu", "0", "--memory-limit", "16GiB", "-o", str(path), environ=environ)
    assert done.returncode == 0, done.stderr
    before = load(path)
    save(msgspec.structs.replace(before, complete=False, steps=before.steps[:-1]), path)
    again = bench("--resume", "--gpu", "0", "-o", str(path), environ={**environ, "HEATSOAK_PROBE_DEVICE": "cpu"})
    assert again.returncode == 0, again.stderr
    after = load(path)
    assert (after.complete, after.extent, after.memory_limit_bytes) == (True, "full", 16 << 30)
    assert [step.name for step in after.steps] == [step.name for step in before.steps]


def test_a_card_lost_on_the_way_ends_the_benchmark(environ: Environ, path: Path, tmp_path: Path) -> None:
    """Exit code 10 with the reason; what was measured before stands."""
    scenario = write_scenario(tmp_path / "lost.scenario", ["include h200x2", "card 0 * = GPU_IS_LOST during 4..90"])
    done = bench("--full", "-o", str(path), environ={**environ, "FAKE_NVML_SCENARIO": str(scenario)})
    assert done.returncode == 10, done.stderr
    assert "gpu_lost" in done.stderr
    result = load(path)
    assert result.steps
    assert not result.complete
    assert f"holds {len(result.steps)} of" in done.stderr
    assert "then the same command with --resume goes on" in done.stderr


def test_a_benchmark_without_any_figure_is_no_success(environ: Environ, path: Path, stub: StubInterpreter) -> None:
    """Every child crashes: the table shows it, and so does the exit code."""
    stub.behave("abort")
    done = bench("-o", str(path), "--gpu", "0", environ=environ)
    assert (done.returncode, "crashed:SIGABRT" in done.stdout) == (11, True), done.stderr
    assert load(path).complete


def test_formats(environ: Environ, path: Path) -> None:
    """JSON is the file; the familiar lines have a total; both also from a finished file."""
    done = bench("-o", str(path), "--format", "json", "--gpu", "0", environ=environ)
    assert json.loads(done.stdout) == json.loads(path.read_text())
    again = bench("-o", str(path), "--resume", "--format", "tf_cnn", "--gpu", "0", environ=environ)
    assert again.returncode == 0, again.stderr
    assert [line for line in again.stdout.splitlines() if line.startswith("total images/sec: ")]
    assert again.stderr == ""


@pytest.mark.parametrize(
    ("behaviour", "code", "word"),
    [
        ("bench", 0, "gpu 1 NVIDIA H200: yes"),
        ("no_tensorflow", 11, "-> install TensorFlow: "),
        ("on_cpu", 11, "ran_on_cpu"),
    ],
)
def test_smoke_answers_for_each_card(
    environ: Environ, path: Path, stub: StubInterpreter, behaviour: str, code: int, word: str
) -> None:
    """Yes or no, why, and what next; a file only where one was asked for."""
    stub.behave(behaviour)
    done = bench("--smoke", "-o", str(path), environ=environ)
    assert (done.returncode, word in done.stdout) == (code, True), done.stdout + done.stderr
    assert load(path).extent == "smoke"
    assert bench("--smoke", "-o", str(path), environ=environ).returncode == 2
    onward = bench("--resume", "-o", str(path), environ=environ)
    assert (onward.returncode, "answer of --smoke" in onward.stderr) == (2, True), onward.stderr


@pytest.mark.parametrize("form", ["json", "tf_cnn"])
def test_smoke_says_no_in_every_form(environ: Environ, stub: StubInterpreter, form: str) -> None:
    """The answer with its cause is never lost to the form; what a parser reads holds nothing else."""
    stub.behave("no_tensorflow")
    done = bench("--smoke", "--format", form, environ=environ)
    assert done.returncode == 11, done.stderr
    assert "gpu 1 NVIDIA H200: no: tensorflow_missing" in done.stderr
    assert "-> install TensorFlow: `pip install" in done.stderr
    assert (json.loads(done.stdout)["extent"] if form == "json" else done.stdout) == ("smoke" if form == "json" else "")


def test_smoke_is_interrupted_at_once(environ: Environ, stub: StubInterpreter) -> None:
    """Ctrl-C ends its children too, long before their deadline."""
    stub.behave("long")
    running = subprocess.Popen(command("--smoke"), env=environ, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(3.0)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=15)
    finally:
        running.kill()
        running.wait()
    assert (running.returncode, said) == (130, "heatsoak: interrupted\n")


def test_two_benchmarks_do_not_write_one_file(environ: Environ, path: Path, stub: StubInterpreter) -> None:
    """The second is refused and leaves the first one's file alone; a killed one is no obstacle and leaves nothing."""
    temporary = path.parent.parent / "temporary"
    temporary.mkdir()
    environ = {**environ, "TMPDIR": str(temporary)}
    stub.behave("long")
    first = subprocess.Popen(command("-o", str(path)), env=environ, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: list(temporary.glob("heatsoak-bench-*/*/scratch/*")), "a child")
        refused = bench("-o", str(path), "--resume", environ=environ)
        assert (refused.returncode, "another benchmark writes it" in refused.stderr) == (2, True), refused.stderr
        assert not path.exists()
    finally:
        children = psutil.Process(first.pid).children(recursive=True)
        first.kill()
        first.wait()
    try:
        stub.behave("bench")
        done = bench("-o", str(path), "--resume", environ=environ)
        assert done.returncode == 0, done.stderr
        assert list(temporary.glob("*/*")) == []
        assert not [child for child in children if child.is_running() and child.status() != psutil.STATUS_ZOMBIE]
    finally:
        for child in children:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()
    assert load(path).complete
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_without_a_card_both_say_what_to_do(environ: Environ, path: Path) -> None:
    """A node without a driver is told of the CPU."""
    none = {
        **environ,
        "FAKE_NVML_SCENARIO": str(write_scenario(path.parent.parent / "no.scenario", "include nodriver")),
    }
    smoked = bench("--smoke", environ=none)
    assert (smoked.returncode, "--device cpu" in smoked.stdout) == (11, True), smoked.stdout + smoked.stderr
    done = bench("-o", str(path), environ=none)
    assert (done.returncode, "--device cpu" in done.stderr) == (2, True), done.stderr
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--quick", "--full"), "--quick --full"),
        (("--memory-limit", "16"), "16GiB"),
        (("-o", "/absent/file.json", "--device", "cpu"), "/absent/file.json: cannot be written: there is no such dir"),
        (("--smoke", "-o", "/absent/file.json", "--device", "cpu"), "there is no such directory"),
        (("--device", "cpu", "--memory-limit", "4GiB"), "--memory-limit: without effect on the CPU"),
        (("--device", "cpu", "--gpu", "0", "--force"), "--gpu and --force: without effect on the CPU"),
        (("--smoke", "--device", "cpu", "--memory-limit", "4GiB"), "--memory-limit: without effect on the CPU"),
        (("--smoke", "--resume", "--method", "article"), "--resume and --method: without effect beside --smoke"),
        (("--smoke", "--full"), "--full --smoke"),
        (("--smoke", "--label", "x"), "--label: without effect beside --smoke without -o"),
        (("--label", "a\nb"), "'a\\nb' holds what cannot be printed"),
    ],
)
def test_usage_errors(environ: Environ, path: Path, arguments: tuple[str, ...], word: str) -> None:
    """Exit code 2 before anything is measured; nothing is left behind."""
    done = subprocess.run(
        command(*arguments), env=environ, cwd=path.parent, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, word in done.stderr) == (2, True), done.stderr
    assert list(path.parent.iterdir()) == []


@pytest.mark.tensorflow
def test_cpu_is_measured_for_real(tmp_path: Path, path: Path) -> None:
    """The small plan: real figures of every step, a loss that is finite, and the familiar lines."""
    environ = {**os.environ, "HEATSOAK_STATE_DIR": str(tmp_path / "state")}
    done = bench("--device", "cpu", "-o", str(path), "--format", "tf_cnn", environ=environ)
    assert done.returncode == 0, done.stderr
    result = load(path)
    assert result.complete
    assert {record.result.status for step in result.steps for record in step.records} == {"ok"}
    assert {record.uuid for step in result.steps for record in step.records} == {"cpu"}
    timed = next(point for point in points(result) if point.record.result.series)
    assert len(timed.record.result.series["step_s"]) == 20
    total = float(done.stdout.partition("total images/sec: ")[2].split()[0])
    assert total == pytest.approx(20 * 2 / sum(timed.record.result.series["step_s"]), rel=0.01)
    assert {str(curve.setting) for curve in analysis.curves(points(result))} == {"resnet50 fp32 graph 32 px"}
