"""Images built by buildah, and containers as a runtime makes them: the image's user, read-only root, own namespaces."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.agent import ROOT, eventually

STORE = ROOT / ".build" / "system"
BASE = "localhost/heatsoak-test-base"
_BUILDAH = (
    "buildah", "--root", str(STORE / "containers"), "--runroot", "/run/heatsoak-test", "--storage-driver", "overlay",
)  # fmt: skip
_BUILD_S = 300.0
_START = """
set -e
root=$1 user=$2; shift 2
ip link set lo up
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind /dev "$root/dev"
while [ "$1" != -- ]; do mount --bind "$1" "$root$2"; mount -o "remount,bind,$3" "$root$2"; shift 3; done
shift
mount -o remount,bind,ro "$root"
cd "$root"
exec chroot . /usr/bin/setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --inh-caps=-all \
  --bounding-set=-all --no-new-privs -- "$@"
"""


def buildah(*arguments: str) -> str:
    """Run buildah and return what it wrote."""
    ended = subprocess.run(
        [*_BUILDAH, *arguments], capture_output=True, text=True, timeout=_BUILD_S, check=False, cwd=ROOT
    )
    assert ended.returncode == 0, f"{arguments}: {ended.stdout[-3000:]}{ended.stderr[-3000:]}"
    return ended.stdout.strip()


def base_image() -> str:
    """Return an image of Debian with Python and pip; made once a checkout."""
    if BASE not in buildah("images", "--format", "{{.Name}}"):
        archive = STORE / "base.tar"
        if not archive.exists():
            STORE.mkdir(parents=True, exist_ok=True)
            scratch = archive.with_suffix(".part.tar")
            command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=python3-pip", "bookworm", str(scratch)]
            subprocess.run(command, check=True, timeout=_BUILD_S, capture_output=True)
            scratch.rename(archive)
        container = buildah("from", "scratch")
        buildah("add", container, str(archive), "/")
        buildah("commit", "--rm", container, BASE)
    return BASE


def configuration(image: str) -> Mapping[str, Any]:
    """Return what the image says about how it is run."""
    config: Mapping[str, Any] = json.loads(buildah("inspect", "--type", "image", image))["Docker"]["config"]
    return config


class Container:
    """A running container with a network of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """The first process of the container, as this machine numbers it."""
        return _first(self._process)

    def log(self) -> str:
        """Return what it wrote so far."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def get(self, path: str) -> str:
        """Return a page of port 9838, empty where there is none."""
        url = f"http://127.0.0.1:9838{path}"
        command = ["nsenter", "-t", str(self.pid), "-n", "curl", "-sf", "--max-time", "10", url]
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stdout

    def run(self, command: Sequence[str]) -> int:
        """Run a command within the container's namespaces and return its exit code."""
        inside = ["nsenter", "-t", str(self.pid), "-m", "-n", "-p", "-r", "--", *command]
        return subprocess.run(inside, capture_output=True, timeout=60, check=False).returncode

    def stop(self) -> int:
        """Send SIGTERM to the first process and return its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self._process.wait(30.0)

    def ended(self) -> bool:
        """Return whether it has ended."""
        return self._process.poll() is not None


@contextlib.contextmanager
def running_container(
    image: str,
    folder: Path,
    *,
    environ: Mapping[str, str] | None = None,
    mounts: Mapping[str, tuple[Path, str]] | None = None,
    host_pids: bool = False,
) -> Iterator[Container]:
    """Run an image as it says, and end it afterwards.

    ``mounts`` maps a path inside to a folder here and ``ro`` or ``rw``. Without ``host_pids`` it has a pid
    namespace of its own.
    """
    config = configuration(image)
    variables = dict(entry.split("=", 1) for entry in config["Env"]) | dict(environ or {})
    with contextlib.ExitStack() as stack:
        container = buildah("from", image)
        stack.callback(buildah, "rm", container)
        root = buildah("mount", container)
        stack.callback(buildah, "umount", container)
        words = []
        for inside, (here, mode) in (mounts or {}).items():
            Path(root + inside).mkdir(parents=True, exist_ok=True)
            words += [str(here), inside, mode]
        command = [
            "unshare", "--mount", "--ipc", "--uts", "--net", "--fork",
            *([] if host_pids else ["--pid"]),
            "sh", "-c", _START, "sh", root, config["User"], *words, "--", *config["Entrypoint"], *config["Cmd"],
        ]  # fmt: skip
        log = folder / "container.log"
        output = stack.enter_context(log.open("wb"))
        process = subprocess.Popen(
            command, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        running = Container(process, log)
        stack.callback(_end, process)
        eventually(lambda: running.get("/livez") or running.ended(), "a container that serves")
        assert not running.ended(), running.log()
        yield running


def _first(process: "subprocess.Popen[bytes]") -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else process.pid


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        os.kill(_first(process), signal.SIGKILL)  # with a pid namespace of its own all others follow
    process.wait(20.0)
