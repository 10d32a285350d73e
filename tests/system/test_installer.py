"""`install.sh` over a machine's life: twice, back again, off, and on again."""

import pytest

from tests.support.agent import eventually
from tests.support.machine import Machine, booted
from tests.system.conftest import CONFIGURATION, ENVIRONMENT, INSTALLER, machine_files

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]

_STATE = "/var/lib/heatsoak"
_NOT_OURS = ("/run/", "/tmp/", "/var/log/", "/var/cache/", "/root/", "/var/lib/systemd/", "/var/tmp/", "/etc/.pwd.lock")
"""Where the machine itself writes."""
_ACCOUNTS = ("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid")
_EMPTIED = "/etc/systemd/system/multi-user.target.wants"
"""The folder of links to services: systemctl removes it with the last of them."""
_DROP_IN = "/etc/systemd/system/heatsoak.service.d/local.conf"
_FOLDERS = ("/opt/heatsoak", "/etc/heatsoak", "/run/heatsoak", "/etc/systemd/system/heatsoak.service.d")


def _install(machine: Machine) -> str:
    return machine.output(INSTALLER, "install", "--wheels", "/opt/packages", "--tensorflow", "none")


def _release(machine: Machine) -> str:
    return machine.output("readlink", "-f", "/opt/heatsoak/current")


def _state(machine: Machine) -> str:
    return machine.unit("heatsoak.service", "ActiveState")["ActiveState"]


def _install_as_a_careful_root(machine: Machine) -> None:
    """Install from a shell whose new files are root's alone, with the packages named from where it stands."""
    script = 'umask 077; cd /opt; exec "$0" install --wheels packages --tensorflow none'
    machine.run("sh", "-c", script, INSTALLER)


def _ours(machine: Machine) -> set[str]:
    """Return what changed on the machine, accounts apart: of those the content is compared."""
    changed = {path for path in machine.changed() if path.removesuffix("-") not in _ACCOUNTS}
    return {path for path in changed if not path.startswith(_NOT_OURS)} - {_EMPTIED}


def _paused(machine: Machine) -> bool:
    page = machine.run("curl", "-sf", "http://127.0.0.1:9838/metrics", check=False).stdout
    return any(
        line.startswith('heatsoak_card_state{gpu="0"') and 'state="maintenance"' in line and line.endswith(" 1.0")
        for line in page.splitlines()
    )


def test_install_upgrade_rollback_uninstall_and_install_again() -> None:
    """Each command may be repeated; uninstalling leaves the state and nothing else, and it is taken up again."""
    with booted(machine_files()) as machine:
        before = _ours(machine)
        passwords = machine.output("cat", "/etc/passwd", "/etc/group")
        machine.write("/etc/heatsoak/environment", ENVIRONMENT)
        machine.write("/etc/heatsoak/heatsoak.toml", CONFIGURATION)

        assert "is running: serving on" in _install(machine)
        first = _release(machine)
        _install(machine)
        second = _release(machine)
        assert second != first
        assert machine.output("ls", "/opt/heatsoak/releases").split() == sorted(
            path.rpartition("/")[2] for path in (first, second)
        )

        machine.run(INSTALLER, "rollback")
        assert (_release(machine), _state(machine)) == (first, "active")
        machine.run(INSTALLER, "rollback")
        assert (_release(machine), _state(machine)) == (second, "active")

        eventually(lambda: machine.run("heatsoak", "pause", "--gpu", "0", check=False).returncode == 0, "a card")
        machine.write(_DROP_IN, "[Service]\nNice=5\n")
        assert machine.run(INSTALLER, "uninstall", "--prge", check=False).returncode == 2
        assert _state(machine) == "active"
        machine.run(INSTALLER, "uninstall")
        machine.run(INSTALLER, "uninstall")
        left = _ours(machine) - before
        assert {path for path in left if not path.startswith(_STATE)} == set()
        assert f"{_STATE}/heatsoak.db" in left
        assert f"{_STATE}/configuration/heatsoak.toml" in left
        assert f"{_STATE}/configuration/heatsoak.service.d/local.conf" in left
        assert machine.output("stat", "-c", "%U", f"{_STATE}/heatsoak.db") == "root"
        assert machine.output("cat", "/etc/passwd", "/etc/group") == passwords
        assert machine.run("ls", "-d", *_FOLDERS, check=False).stdout == ""
        assert machine.run("systemctl", "list-unit-files", "--no-legend", "heatsoak*", check=False).stdout == ""

        machine.write("/etc/heatsoak/environment", ENVIRONMENT)
        _install(machine)
        assert machine.output("stat", "-c", "%U", f"{_STATE}/heatsoak.db") == "heatsoak"
        eventually(lambda: _paused(machine), "the card paused before it was uninstalled")
        machine.run(INSTALLER, "uninstall", "--purge")
        assert _ours(machine) - before == set()


def test_a_failed_upgrade_leaves_the_running_agent_alone() -> None:
    """Missing packages, the agent's or TensorFlow's, are told; nothing half-made is left, and the old agent runs."""
    with booted(machine_files()) as machine:
        _install_as_a_careful_root(machine)
        assert _state(machine) == "active"
        assert (
            machine.output("stat", "-c", "%a", "/etc/heatsoak/heatsoak.toml", "/usr/local/bin/heatsoak") == "644\n755"
        )
        release, pid = _release(machine), machine.unit("heatsoak.service", "MainPID")
        machine.run("mkdir", "/opt/nothing")
        machine.run("sh", "-c", "mkdir /opt/some; ln -s /opt/packages/[!t]* /opt/packages/t[!e]* /opt/some")
        for options in (("--wheels", "/opt/nothing"), ("--wheels", "/opt/some", "--tensorflow", "cpu")):
            failed = machine.run(INSTALLER, "install", *options, check=False)
            assert failed.returncode == 2
            assert "what ran before still runs" in failed.stderr
        assert (_release(machine), machine.unit("heatsoak.service", "MainPID")) == (release, pid)
        assert machine.output("ls", "/opt/heatsoak/releases").split() == [release.rpartition("/")[2]]
