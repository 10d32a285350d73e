"""Durations, systemd messages and the lazily loaded commands."""

import re
import socket
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import heatsoak
from agent.config.settings import Settings
from agent.duration import duration_s
from agent.invocation import Invocation
from agent.notify import Notifier


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90.0), ("30m", 1800.0), ("2h", 7200.0), ("1.5d", 129600.0)])
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    """A number and a unit."""
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "h", "-1h", "0s", "1w", "1 h", "1e9s", "infh"])
def test_what_is_no_duration_says_what_would_be_right(text: str) -> None:
    """The value and the accepted forms are named."""
    with pytest.raises(click.BadParameter, match="right would be 90s, 30m, 2h or 1d"):
        duration_s(text)


def test_a_relative_state_directory_becomes_absolute() -> None:
    """Children run in directories of their own, where a relative path would name nothing."""
    for invocation in (Invocation({}, 0, None, "state"), Invocation({"HEATSOAK_STATE_DIR": ".build/state"}, 0)):
        directory = invocation.state_directory(Settings())
        assert directory.is_absolute()
        assert directory == Path.cwd() / (invocation.state_dir or ".build/state")


def test_systemd_hears_ready_watchdog_reload_and_stop(tmp_path: Path) -> None:
    """Each message has the form that sd_notify documents."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(tmp_path / "notify"))
        notifier = Notifier({"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "30000000"})
        notifier.ready("serving")
        notifier.alive()
        notifier.reloading(12.5)
        notifier.stopping()
        heard = [server.recv(200).decode() for _ in range(4)]
    assert heard == ["READY=1\nSTATUS=serving", "WATCHDOG=1", "RELOADING=1\nMONOTONIC_USEC=12500000", "STOPPING=1"]


def test_without_a_service_manager_nothing_is_sent_and_nothing_fails() -> None:
    """No socket, a socket that is gone, a watchdog for another process."""
    for environ in ({}, {"NOTIFY_SOCKET": "/nonexistent/notify"}, {"WATCHDOG_USEC": "1", "WATCHDOG_PID": "1"}):
        notifier = Notifier(environ)
        notifier.ready("serving")
        notifier.alive()


def test_a_speed_without_a_recording_is_refused() -> None:
    """Real cards are read at their own pace."""
    result = CliRunner().invoke(heatsoak.cli, ["run", "--speed", "5"])
    assert (result.exit_code, "--speed: without effect" in result.output) == (2, True)


def test_every_command_of_the_table_can_be_loaded() -> None:
    """Each lazily named command exists and has its help."""
    names = heatsoak.cli.list_commands(click.Context(heatsoak.cli))
    for name in names:
        answer = CliRunner().invoke(heatsoak.cli, [name, "--help"])
        assert answer.exit_code == 0, (name, answer.output)
    assert len(names) == len(set(names))


@pytest.mark.parametrize("group", ["", "config", "inventory", "reference"])
def test_summaries_of_commands_fit_their_line(group: str) -> None:
    """Nothing is cut off on a terminal of 80 columns, and each command has one line."""
    answer = CliRunner().invoke(heatsoak.cli, [*filter(None, [group]), "--help"], terminal_width=80)
    listed = answer.output.partition("Commands:\n")[2].rstrip().splitlines()
    assert listed
    assert [line for line in listed if not re.match(r"  \S", line) or line.endswith("...")] == []
