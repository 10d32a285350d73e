"""How long to wait before the driver is tried again."""

from typing import Final

FIRST_S: Final = 5.0
LONGEST_S: Final = 60.0


class Backoff:
    """Doubles from 5 s to 60 s, with no jitter: a node tries its own driver only."""

    def __init__(self) -> None:
        self._next_s = FIRST_S

    def next_s(self) -> float:
        """Return how long to wait now, in seconds."""
        wait_s = self._next_s
        self._next_s = min(LONGEST_S, 2 * wait_s)
        return wait_s

    def reset(self) -> None:
        """Begin again at the shortest wait."""
        self._next_s = FIRST_S
