"""Result files: what was saved is loaded again; everything else is refused in one line."""

import json
from pathlib import Path

import msgspec
import pytest

from agent.bench.model import Step
from agent.bench.store import held, load, save
from agent.errors import ConfigError
from agent.model.probe import ProbeRecord, Timing
from tests.support.results import bench_result, machine, pipeline, plain_steps, training


def test_a_saved_result_is_loaded_as_it_was(tmp_path: Path) -> None:
    """Records and all; nothing else is left beside the file."""
    result = bench_result(
        *plain_steps(), Step("failed", (training(1.0, status="error"),)), Step("p", (pipeline(1, 2),))
    )
    save(result, tmp_path / "r.json")

    assert load(tmp_path / "r.json") == result
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]


def test_one_benchmark_writes_a_file_at_a_time(tmp_path: Path) -> None:
    """The second is told so; nothing is left beside the file."""
    path = tmp_path / "r.json"
    with held(path), pytest.raises(ConfigError, match=r"r\.json: another benchmark writes it"), held(path):
        pass
    with held(path):
        assert [file.name for file in path.parent.iterdir()] == [".r.json.lock"]
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(("path", "why"), [("/proc/r.json", ".+"), ("absent/r.json", "there is no such directory")])
def test_where_nothing_can_be_written_no_benchmark_begins(tmp_path: Path, path: str, why: str) -> None:
    """One line, with the way out; a mistyped path makes no directories."""
    told = rf"r\.json: cannot be written: {why}; name another file"
    with pytest.raises(ConfigError, match=told), held(tmp_path / path):
        pass
    assert list(tmp_path.iterdir()) == []


def changed(**result: object) -> ProbeRecord:
    """Return a training record with a changed answer."""
    record = training(1000.0)
    return msgspec.structs.replace(record, result=msgspec.structs.replace(record.result, **result))


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (changed(value=0.0), "step 's', resnet50: value is 0, not 1e-12 to 1e+24"),
        (changed(value=-3.0), "value is -3"),
        (changed(value=1e300), "value is 1e+300"),
        (changed(shape="64x224"), "shape is '64x224', not as 256x224x224x3"),
        (changed(shape="0x224x224x3"), "shape is '0x224x224x3'"),
        (changed(figures={"replicas": 0.0}), "replicas is 0, not 1 to"),
        (training(1000.0, watts=-5.0), "power_mean_watts is -5, not 0.001 to 1e+06"),
        (changed(series={"step_s": (0.1, 0.0)}), "step_s is 0, not"),
        (changed(timing=Timing(0.0, 0.0, 0.0, 1.0, 5, 1, 4.0, 1.0)), "median_s is 0, not"),
        (pipeline(100.0, -5.0), "step 's', pipeline: card_images_per_second is -5, not"),
        (changed(figures={"accumulate": 1e9}), "accumulate is 1e+09"),
    ],
)
def test_figures_that_nothing_could_be_computed_from_are_refused(
    tmp_path: Path, record: ProbeRecord, told: str
) -> None:
    """The line names the file, the step and the value."""
    path = tmp_path / "r.json"
    save(bench_result(Step("s", (record,))), path)

    with pytest.raises(ConfigError) as raised:
        load(path)

    (line,) = raised.value.faults
    assert line.startswith(f"{path}: ")
    assert told in line


def test_texts_of_strangers_cannot_steer_a_terminal(tmp_path: Path) -> None:
    """Control characters are shown as what they are, wherever they stand; what is too long is cut."""
    path = tmp_path / "r.json"
    evil = bench_result(Step("s", (changed(dtype="\x1b[2J"),)), label="a\nb", on=machine(tensorflow="\x1b]0;x\x07"))
    save(msgspec.structs.replace(evil, machine=msgspec.structs.replace(evil.machine, cpu="x" * 5000)), path)

    result = load(path)

    assert (result.label, result.machine.tensorflow) == ("a\ufffdb", "\ufffd]0;x\ufffd")
    assert result.steps[0].records[0].result.dtype == "\ufffd[2J"
    assert len(result.machine.cpu) == 1000


@pytest.mark.parametrize("text", ["", "[]", "{", '{"kind": "heatsoak-bench"}', "\x00", "[" * 100_000])
def test_what_is_no_result_is_refused(tmp_path: Path, text: str) -> None:
    """Whatever it is."""
    path = tmp_path / "r.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="give a file that heatsoak bench wrote"):
        load(path)


def test_a_result_of_a_newer_heatsoak_is_told_apart(tmp_path: Path) -> None:
    """It is not called broken."""
    path = tmp_path / "r.json"
    save(bench_result(), path)
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "schema_version": 7, "steps": "of another form"}), encoding="utf-8")
    with pytest.raises(ConfigError, match="result of schema 7; this heatsoak reads up to 1"):
        load(path)
