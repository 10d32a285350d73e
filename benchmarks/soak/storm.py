"""What befalls cards, driver and probe children, one trouble after the other, chosen by a seeded draw."""

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.support.fakenvml import write_scenario
from tests.support.stub_interpreter import StubInterpreter

CALM = "calm"
BEHAVIOURS = (
    "well", "well", "well", "hang", "hang_deaf", "abort", "kill", "double_fork", "grandchild", "noise", "half_line",
    "nan", "invalid_utf8", "long_line", "no_result", "wrong_uuid", "on_cpu", "no_tensorflow", "slow_tail",
)  # fmt: skip
"""What the next probe child may do; see tests/support/stub_probe."""


class Trouble(NamedTuple):
    """Lines of a scenario, for how long they hold, and how often they are drawn."""

    name: str
    lines: Sequence[str]
    seconds: float
    weight: int
    costs_the_card: bool = False
    """Whether the reader leaves the card out for minutes afterwards."""


_NO_ACCESS = "card all * = UNKNOWN"
TROUBLES = (
    # What takes the whole driver away is rare: after it the reader waits for up to a minute, and nothing is read.
    Trouble("card lost", ("card 1 * = GPU_IS_LOST", "event 1 xid 79"), 3, 12),
    Trouble("card needs a reset", ("card 0 * = RESET_REQUIRED",), 3, 12),
    Trouble("driver gone", ("system nvmlInit* = DRIVER_NOT_LOADED", _NO_ACCESS), 6, 1),
    Trouble("driver swapped", ("system nvmlInit* = LIB_RM_VERSION_MISMATCH", _NO_ACCESS), 6, 1),
    Trouble("garbage", ("card 0 nvmlDeviceGetTemperature NVML_TEMPERATURE_GPU = 644245923",), 2, 8),
    Trouble("processes churn", ("process all compute count 200 churn memory 1MiB",), 4, 12),
    Trouble("slow call", ("latency 1 nvmlDeviceGetTemperature = 300ms",), 3, 8),
    Trouble("very slow call", ("latency 0 nvmlDeviceGetUtilizationRates = 1s",), 4, 5),
    Trouble("library crashes", ("card 1 nvmlDeviceGetTemperature = CRASH",), 3, 1, costs_the_card=True),
    Trouble("call hangs", ("card 1 nvmlDeviceGetTemperature = HANG",), 4, 1, costs_the_card=True),
    Trouble("init hangs", ("system nvmlInit* = HANG", _NO_ACCESS), 6, 1),
)


class Storm:
    """Replaces the scenario that the agent's reader plays, and what its probe children do, until it is stopped."""

    def __init__(self, scenario: Path, stub: StubInterpreter, seed: int) -> None:
        """Begin calm."""
        self._scenario = scenario
        self._stub = stub
        self._draw = random.Random(seed)
        self._version = 0
        self.now = CALM
        self.counts: Counter[str] = Counter()
        self._play(CALM, ())

    def run(self, ended: threading.Event, may_cost_a_card: Callable[[], bool]) -> None:
        """Draw one trouble after another, calm between them; calm again at the end."""
        while not ended.is_set():
            troubles = [trouble for trouble in TROUBLES if may_cost_a_card() or not trouble.costs_the_card]
            (trouble,) = self._draw.choices(troubles, [each.weight for each in troubles])
            self._stub.behave(self._draw.choice(BEHAVIOURS))
            self.counts[trouble.name] += 1
            self._play(trouble.name, trouble.lines)
            ended.wait(trouble.seconds)
            if trouble.name == "driver swapped":
                self._version += 1
            self._play(CALM, ())
            ended.wait(self._draw.uniform(1, 5))
        self._stub.behave("well")

    def _play(self, name: str, lines: Sequence[str]) -> None:
        version = f'system nvmlSystemGetDriverVersion = "580.159.{4 + self._version % 2:02d}"'
        write_scenario(self._scenario, ["include h200x2", version, *lines])
        self.now = name
