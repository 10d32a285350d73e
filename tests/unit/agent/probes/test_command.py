"""The probe command's edges: usage, exit codes, where caches are kept."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.invocation import Invocation
from agent.model.probe import PROBE_KINDS
from agent.model.vocabulary import ProbeStatus
from agent.probes.command import TAKES, cache_directory, exit_code_of, probe
from tests.support.records import START_S, record


@pytest.mark.parametrize("arguments", [[], ["matmul", "--quick"], ["moon"], ["matmul", "--dtype", "int8"]])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    """And says what would be right."""
    result = CliRunner().invoke(probe, arguments, obj=Invocation(environ={}, uid=1000))
    assert result.exit_code == 2
    assert "matmul" in result.output or "bf16" in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ("--device", "cpu", "--quick"),
        *((*option, "--quick") for option in (("--force",), ("--xla",), ("--dtype", "fp16"), ("--seconds", "2"))),
        ("--gpu", "3", "matmul", "--device", "cpu"),
        ("--force", "matmul", "--device", "cpu"),
        ("--within", "9", "matmul"),
        ("--batch", "8", "matmul"),
        ("--xla", "matmul"),
        ("--dtype", "fp16", "bandwidth"),
        ("--seconds", "5", "fill"),
    ],
)
def test_an_option_without_effect_is_refused(arguments: tuple[str, ...]) -> None:
    """Whoever gives it believes that it counts."""
    result = CliRunner().invoke(probe, arguments, obj=Invocation(environ={}, uid=1000))
    assert result.exit_code == 2
    assert f"{arguments[0]}: without effect" in result.output


def test_the_configurations_device_counts_too(tmp_path: Path) -> None:
    """A card cannot be named where probes are set to the CPU."""
    (tmp_path / "h.toml").write_text('[probe]\ndevice = "cpu"\n')
    invocation = Invocation(environ={}, uid=1000, config_path=str(tmp_path / "h.toml"))
    result = CliRunner().invoke(probe, ["matmul", "--gpu", "0"], obj=invocation)
    assert (result.exit_code, "--gpu: without effect" in result.output) == (2, True)


def test_what_each_probe_heeds_is_known() -> None:
    """A new probe says it."""
    assert set(TAKES) == set(PROBE_KINDS)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([("ok", "")], 0),
        ([("ok", ""), ("skipped", "busy")], 11),
        ([("timeout", "deadline")], 11),
        ([("error", "oom:1"), ("wrong_answer", "exact_mismatch")], 10),
        ([("aborted", "gpu_lost")], 10),
    ],
)
def test_exit_code_tells_bad_from_unknown(words: list[tuple[ProbeStatus, str]], code: int) -> None:
    """A card that computes wrong is bad; one without a value is unknown."""
    assert exit_code_of([record(START_S, status=status, reason=reason) for status, reason in words]) == code


def test_caches_are_the_users_own(tmp_path: Path) -> None:
    """The XDG cache home, else below the home directory, else nowhere."""
    xdg = Invocation(environ={"XDG_CACHE_HOME": str(tmp_path / "x"), "HOME": str(tmp_path)}, uid=1000)
    assert cache_directory(xdg) == tmp_path / "x/heatsoak"
    assert cache_directory(Invocation(environ={"HOME": str(tmp_path)}, uid=1000)) == tmp_path / ".cache/heatsoak"
    assert cache_directory(Invocation(environ={}, uid=1000)) is None
    (tmp_path / "file").write_text("")
    assert cache_directory(Invocation(environ={"HOME": str(tmp_path / "file")}, uid=1000)) is None
