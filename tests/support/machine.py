"""A machine of its own: systemd really booted on a copy-on-write view of this machine's files."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.agent import eventually

_BOOT_S = 60.0
_COMMAND_S = 300.0


class Machine:
    """A booted machine without a network but its loopback; nothing written in it reaches this one."""

    def __init__(self, root: Path, upper: Path, leader: int) -> None:
        """Take where its files and its changes are seen from outside, and the process id of its init."""
        self.root = root
        self._upper = upper
        self._leader = leader

    def changed(self) -> set[str]:
        """Return every file and link that was made, changed or removed since before its boot."""
        return {
            "/" + str((Path(folder) / name).relative_to(self._upper))
            for folder, _, names in os.walk(self._upper)
            for name in names
        }

    def run(
        self, *command: str, check: bool = True, input_text: str | None = None, timeout_s: float = _COMMAND_S
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside as root and return it; fails with what it wrote unless it ends with 0."""
        ended = subprocess.run(
            ["nsenter", "-t", str(self._leader), "-m", "-u", "-i", "-n", "-p", "-r", "-w", "--", *command],
            capture_output=True,
            text=True,
            input=input_text,
            timeout=timeout_s,
            check=False,
            env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"},
        )
        assert not check or ended.returncode == 0, f"{command}: {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
        return ended

    def output(self, *command: str) -> str:
        """Return what a command wrote, without the last newline."""
        return self.run(*command).stdout.rstrip("\n")

    def unit(self, name: str, *properties: str) -> Mapping[str, str]:
        """Return properties of a unit."""
        lines = self.output("systemctl", "show", name, "-p", ",".join(properties)).splitlines()
        return dict(line.split("=", 1) for line in lines)

    def journal(self, unit: str) -> list[str]:
        """Return the log of a unit so far."""
        return self.output("journalctl", "-u", unit, "-o", "cat", "--no-pager").splitlines()

    def write(self, path: str, text: str) -> None:
        """Write a file inside, its folder made if missing."""
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


@contextlib.contextmanager
def booted(files: Mapping[str, Path] = {}) -> Iterator[Machine]:
    """Boot a machine and end it afterwards; ``files`` are copied in first: path inside, file or folder here.

    Needs root, and systemd-nspawn. None of this machine's own services starts in it.
    """
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heatsoak-machine-")))
        root = _overlay(base, stack)
        for inside, here in files.items():
            subprocess.run(["cp", "-aT", str(here), str(_made(root, inside))], check=True, timeout=_COMMAND_S)
        for folder in ("multi-user.target.wants", "timers.target.wants", "sockets.target.wants"):
            for link in (root / "etc/systemd/system" / folder).glob("*"):
                link.unlink()
        log = stack.enter_context((base / "console.log").open("wb"))
        process = subprocess.Popen(
            [
                "systemd-nspawn", "--quiet", f"--directory={root}", "--boot", "--register=no", "--keep-unit",
                f"--machine=heatsoak-{os.getpid()}", "--private-network", "--console=passive",
                "systemd.unit=multi-user.target",
            ],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
        stack.callback(_end, process)
        machine = eventually(lambda: _up(root, base / "upper", process), "a machine that is up", _BOOT_S)
        assert machine is not None
        yield machine


def _overlay(base: Path, stack: contextlib.ExitStack) -> Path:
    """Mount a view of / whose changes live in memory."""
    _mount(stack, base, "-t", "tmpfs", "tmpfs")
    root = base / "root"
    for name in ("root", "upper", "work"):
        (base / name).mkdir()
    _mount(stack, root, "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={base}/upper,workdir={base}/work")
    return root


def _mount(stack: contextlib.ExitStack, where: Path, *arguments: str) -> None:
    subprocess.run(["mount", *arguments, str(where)], check=True, timeout=_COMMAND_S)
    stack.callback(subprocess.run, ["umount", "--lazy", str(where)], check=True, timeout=_COMMAND_S)


def _made(root: Path, inside: str) -> Path:
    target = root / inside.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    return target


def _leader(process: "subprocess.Popen[bytes]") -> int | None:
    """Return the process id of the machine's init; at first it may be that of a helper which makes it."""
    assert process.poll() is None, f"systemd-nspawn has ended with {process.returncode}"
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    return int(children[0]) if children else None


def _up(root: Path, upper: Path, process: "subprocess.Popen[bytes]") -> Machine | None:
    """Return the machine once its boot is over."""
    leader = _leader(process)
    if leader is None:
        return None
    machine = Machine(root, upper, leader)
    state = machine.run("systemctl", "is-system-running", check=False).stdout.strip()
    return machine if state in ("running", "degraded") else None


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Power off; by force where that takes too long."""
    leader = _leader(process) if process.poll() is None else None
    if leader is not None:
        os.kill(leader, signal.SIGRTMIN + 4)  # poweroff.target, as systemd(1) has it
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(20.0)
        return
    process.kill()
    process.wait(20.0)
    time.sleep(0.5)
