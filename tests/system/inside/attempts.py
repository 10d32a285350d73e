"""Tries what a service might do and prints which attempts worked; run from within the unit."""

import ctypes
import json
import mmap
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWUSER = 0x10000000
_SETUID_ID = "/opt/setuid-id"
_FOLDERS = {
    "write_state": "/var/lib/heatsoak",
    "write_tmp": "/tmp",
    "write_etc": "/etc",
    "write_usr": "/usr/lib",
    "write_opt": "/opt/heatsoak",
    "write_log": "/var/log",
    "write_other_state": "/var/lib",
    "write_cgroup": "/sys/fs/cgroup",
}


def _write(folder: str) -> None:
    path = Path(folder) / "heatsoak-attempt"
    path.touch()
    path.unlink()


def _call(name: str, *arguments: object) -> None:
    if getattr(_LIBC, name)(*arguments) < 0:
        raise OSError(ctypes.get_errno(), name)


def _run_setuid() -> None:
    if subprocess.run([_SETUID_ID, "-u"], check=True, capture_output=True).stdout.strip() != b"0":
        raise PermissionError(_SETUID_ID)


def _make_setuid() -> None:
    path = Path("/tmp/setuid")
    path.touch()
    path.chmod(0o4755)


_ATTEMPTS: dict[str, Callable[[], object]] = {
    **{name: lambda folder=folder: _write(folder) for name, folder in _FOLDERS.items()},  # type: ignore[misc]
    "see_processes": lambda: Path("/proc/1/stat").read_text(),
    "see_host": lambda: Path("/proc/meminfo").read_text(),
    "map_executable": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "listen": lambda: socket.create_server(("127.0.0.1", 0)).close(),
    "read_root": lambda: list(Path("/root").iterdir()),
    "write_sysctl": lambda: Path("/proc/sys/kernel/hostname").write_text("x"),
    "become_root": lambda: os.setuid(0),
    "run_setuid": _run_setuid,
    "make_setuid": _make_setuid,
    "make_device": lambda: os.mknod("/tmp/device", 0o20666, os.makedev(1, 1)),
    "unshare": lambda: _call("unshare", _CLONE_NEWUSER),
    "mount": lambda: _call("mount", b"tmpfs", b"/tmp", b"tmpfs", 0, None),
    "raw_socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).close(),
    "packet_socket": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close(),
    "realtime": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "set_clock": lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
    "read_kernel_log": lambda: Path("/dev/kmsg").open().close(),
    "debug_init": lambda: Path("/proc/1/exe").readlink(),
}


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


if __name__ == "__main__":
    print("ATTEMPTS " + json.dumps({name: _works(attempt) for name, attempt in _ATTEMPTS.items()}))
