"""The one door for probe processes: started apart, watched, ended on time, nothing left behind."""

import contextlib
import os
import resource
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec
import structlog

from agent.clock import Clock
from agent.host.cpu import TICKS_PER_S
from agent.host.files import Tree
from agent.model.probe import ChildEvent, Done
from agent.probes.decode import BadResultError, EventDecoder
from agent.probes.descendants import MARK, kill_marked

WATCH_PERIOD_S: Final = 0.08
"""How often the watch is asked, in seconds: 12 times a second."""
TAIL_BYTES: Final = 65536
"""How much of the end of a child's output is kept."""
TERM_GRACE_S: Final = 2.0
ABORT_GRACE_S: Final = 0.3
"""A tenant waits for its card: what ignores SIGTERM then is killed sooner."""
EXIT_GRACE_S: Final = 5.0
"""How long a child may take to end after its last line."""
REAP_S: Final = 3.0
_NICE: Final = 10
_PROC: Final = Tree("/proc")
_CHUNK_BYTES: Final = 65536
_MOST_DRAIN_CHUNKS: Final = 64

_log = structlog.get_logger("probe")

Watch = Callable[[int], str]
"""Asked with the child's process id; a non-empty answer is the reason to abort."""
Ended = Literal["exited", "done", "deadline", "aborted", "bad_result", "not_started"]


class ChildCommand(msgspec.Struct, frozen=True):
    """What to start; the number of the result descriptor is added as last argument."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    """Where it works; its own and its descendants' for the time, so that they are known by it."""
    deadline_s: float
    stdin: bytes = b""


class ChildExit(msgspec.Struct, frozen=True):
    """How a child ended."""

    ended: Ended
    """``done`` where it said its last line, whatever became of it then; ``exited`` where it ended without."""
    detail: str = ""
    """The abort reason, the fault in its answer, or why it could not start."""
    code: int | None = None
    """Exit code, negative for a signal; None where it was not started or could not be reaped."""
    killed: bool = False
    """Whether this side sent a signal."""
    output: str = ""
    """The end of what it wrote to standard output and standard error."""
    pid: int = 0
    elapsed_s: float = 0.0
    cpu_s: float | None = None
    """CPU seconds of the process and the children it waited for."""


def run_child(command: ChildCommand, clock: Clock, watch: Watch, on_event: Callable[[ChildEvent], None]) -> ChildExit:
    """Run a child to its end, by itself or by force, and leave no process of it; never raises for its faults."""
    mark = str(command.directory)
    start_s = clock.monotonic_s()
    with tempfile.TemporaryFile(dir=command.directory) as stdin, _pipe() as result, _pipe() as output:
        stdin.write(command.stdin)
        stdin.seek(0)
        try:
            process = subprocess.Popen(
                [*command.argv, str(result[1])],
                stdin=stdin,
                stdout=output[1],
                stderr=output[1],
                pass_fds=(result[1],),
                env={**command.environment, MARK: mark},
                cwd=command.directory,
                start_new_session=True,
            )
        except OSError as error:
            return ChildExit("not_started", f"{command.argv[0]}: {error.strerror or error}")
        _teach_manners(process.pid)
        os.close(result.pop())
        os.close(output.pop())
        child = _Child(process, result[0], output[0], clock, start_s)
        try:
            child.attend(command.deadline_s, watch, on_event)
        finally:
            child.end()
            kill_marked(mark, clock)
        return child.exit()


@contextlib.contextmanager
def _pipe() -> Iterator[list[int]]:
    """Give a pipe's ends, the reading one not blocking; who closes one takes it out of the list."""
    ends = list(os.pipe2(os.O_CLOEXEC))
    os.set_blocking(ends[0], False)
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


def _teach_manners(pid: int) -> None:
    """Make the child the first to go when memory is short, the last to get the CPU, and dump no core.

    Done from outside, since code between fork and exec is not safe in a process with threads. Each is a
    courtesy: a kernel that refuses one, or a child already gone, is no reason not to probe.
    """
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/oom_score_adj").write_text("1000", encoding="ascii")
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, _NICE)
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))


class _Child:
    """One running child; it stays a zombie until ``end``, so its id and group cannot be anybody else's."""

    def __init__(
        self, process: "subprocess.Popen[bytes]", result_fd: int, output_fd: int, clock: Clock, start_s: float
    ) -> None:
        self._process = process
        self._result_fd = result_fd
        self._output_fd = output_fd
        self._clock = clock
        self._start_s = start_s
        self._until_s = self._next_watch_s = start_s
        self._decoder = EventDecoder()
        self._tail = b""
        self._ended: Ended = "exited"
        self._detail = ""
        self._killed = False
        self._cpu_s: float | None = None

    def attend(self, deadline_s: float, watch: Watch, on_event: Callable[[ChildEvent], None]) -> None:
        """Read, watch and wait until there is a reason to end."""
        self._until_s = self._start_s + deadline_s
        with selectors.DefaultSelector() as selector:
            selector.register(self._result_fd, selectors.EVENT_READ)
            selector.register(self._output_fd, selectors.EVENT_READ)
            while not self._gone() and self._may_go_on(watch):
                for key, _ in selector.select(WATCH_PERIOD_S / 2):
                    if self._read(key.fd, on_event) == 0:
                        selector.unregister(key.fd)
        self._drain(on_event)

    def _may_go_on(self, watch: Watch) -> bool:
        """Note why the child must end now, if it must."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._until_s and self._ended == "exited":
            self._ended = "deadline"
        elif now_s >= self._next_watch_s and self._ended == "exited":
            self._next_watch_s = now_s + WATCH_PERIOD_S
            self._detail = watch(self._process.pid)
            if self._detail:
                self._ended = "aborted"
        return self._ended == "exited" or (self._ended == "done" and now_s < self._until_s)

    def end(self) -> None:
        """End what still runs of the child's group and reap the child, in bounded time."""
        if not self._gone():
            self._killed = True
            self._signal(signal.SIGTERM)
            self._wait(ABORT_GRACE_S if self._ended == "aborted" else TERM_GRACE_S)
        self._cpu_s = cpu_s(self._process.pid)
        self._signal(signal.SIGKILL)
        self._wait(REAP_S)
        if self._process.poll() is None:
            _log.error("probe_child_unkillable", pid=self._process.pid)

    def exit(self) -> ChildExit:
        """Say how it ended; after ``end``."""
        ended, detail, code = self._ended, self._detail, self._process.returncode
        if ended == "exited" and code == 0 and self._decoder.incomplete:
            ended, detail = "bad_result", "the last answer line is cut off"
        return ChildExit(
            ended=ended,
            detail=detail,
            code=code,
            killed=self._killed,
            output=self._tail.decode("utf-8", "replace"),
            pid=self._process.pid,
            elapsed_s=self._clock.monotonic_s() - self._start_s,
            cpu_s=self._cpu_s,
        )

    def _gone(self) -> bool:
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # reaped by somebody else, as where SIGCHLD is ignored
            return True

    def _wait(self, timeout_s: float) -> None:
        until_s = self._clock.monotonic_s() + timeout_s
        with selectors.DefaultSelector() as selector:
            while not self._gone() and self._clock.monotonic_s() < until_s:
                selector.select(0.02)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _read(self, fd: int, on_event: Callable[[ChildEvent], None]) -> int | None:
        """Take one chunk; return its length: 0 at the pipe's end, None where there is nothing now."""
        try:
            data = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return None
        if fd == self._output_fd:
            self._tail = (self._tail + data)[-TAIL_BYTES:]
        elif self._ended == "exited":
            self._take(data, on_event)
        return len(data)

    def _take(self, data: bytes, on_event: Callable[[ChildEvent], None]) -> None:
        try:
            for event in self._decoder.feed(data):
                on_event(event)
                if isinstance(event, Done):
                    self._ended = "done"
                    self._until_s = min(self._until_s, self._clock.monotonic_s() + EXIT_GRACE_S)
        except BadResultError as error:
            self._ended, self._detail = "bad_result", str(error)

    def _drain(self, on_event: Callable[[ChildEvent], None]) -> None:
        """Read what is left in the pipes; a grandchild that holds them open is not waited for."""
        for fd in (self._result_fd, self._output_fd):
            for _ in range(_MOST_DRAIN_CHUNKS):
                if not self._read(fd, on_event):
                    break


def cpu_s(pid: int, proc: Tree = _PROC) -> float | None:
    """Return user and system seconds of a process and its waited-for children; None where it is gone."""
    stat = proc.read_or_none(f"{pid}/stat")
    return None if stat is None else sum(int(field) for field in stat.rpartition(")")[2].split()[11:15]) / TICKS_PER_S
