"""How far a benchmark is: a bar on a terminal, a line for each step elsewhere, and the time that is left."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from agent.bench.plan import PlannedStep
from agent.clock import Clock
from agent.model.probe import ChildEvent, Hello, Phase

_MINUTE_S: Final = 60.0


class Pace:
    """Estimates the time left from how long steps took against what was expected of them."""

    def __init__(self) -> None:
        """Start without experience: steps are believed to take what is expected."""
        self._expected_s = 0.0
        self._took_s = 0.0

    def take(self, expected_s: float, took_s: float) -> None:
        """Note one step that was done."""
        self._expected_s += expected_s
        self._took_s += took_s

    def left_s(self, steps: Sequence[PlannedStep], running_s: float = 0.0) -> float:
        """Return how long ``steps`` will take, the first of which has been running for ``running_s``."""
        factor = self._took_s / self._expected_s if self._expected_s else 1.0
        ahead_s = [factor * step.expected_s for step in steps]
        return max(0.0, ahead_s[0] - running_s) + sum(ahead_s[1:]) if ahead_s else 0.0


class Reporter:
    """Tells of steps as they come; ``shown`` keeps the bar for as long as it is entered."""

    def __init__(self, steps: Sequence[PlannedStep], done: int, console: Console, clock: Clock) -> None:
        """Take the steps that are still to do; ``done`` are behind us already."""
        self._ahead = list(steps)
        self.done = done
        """How many steps are behind us."""
        self._total = done + len(self._ahead)
        self._console = console
        self._clock = clock
        self._pace = Pace()
        self._current: PlannedStep | None = None
        self._since_s = clock.monotonic_s()
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TaskProgressColumn(),
            TimeElapsedColumn(), TextColumn("{task.fields[left]}"),
            console=console, transient=True, disable=not console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task("starting", total=self._total, completed=done, left="")

    @contextlib.contextmanager
    def shown(self) -> Iterator[None]:
        """Show the bar while the body runs."""
        with self._bar:
            yield

    def step(self, step: PlannedStep) -> None:
        """Note that ``step`` begins, and so that the one before it is done."""
        self.finish()
        self._current, self._since_s = step, self._clock.monotonic_s()
        self._say(step.name)

    def event(self, event: ChildEvent) -> None:
        """Show what the child of the current step does."""
        if self._current is None:
            return
        if isinstance(event, Hello):
            self._say(f"{self._current.name}: TensorFlow {event.environment.tensorflow}")
        elif isinstance(event, Phase):
            self._say(f"{self._current.name}: {event.phase}")

    def finish(self) -> None:
        """Note that the current step is done."""
        if self._current is None:
            return
        took_s = self._clock.monotonic_s() - self._since_s
        self._pace.take(self._current.expected_s, took_s)
        self._ahead.pop(0)
        self.done += 1
        if not self._console.is_terminal:
            left = f", {_left(self._pace.left_s(self._ahead))}" if self._ahead else ""
            line = f"{self.done}/{self._total} {self._current.name}: {took_s:.1f} s{left}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
        self._current = None
        self._bar.update(self._task, completed=self.done)

    def _say(self, text: str) -> None:
        left_s = self._pace.left_s(self._ahead, self._clock.monotonic_s() - self._since_s)
        self._bar.update(self._task, description=text, left=_left(left_s))


def _left(seconds: float) -> str:
    if seconds < _MINUTE_S:
        return f"about {seconds:.0f} s left"
    return f"about {seconds / _MINUTE_S:.0f} min left"
