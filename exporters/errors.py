"""Errors of the exporters: each says what is wrong, where, and what would be right."""

from collections.abc import Sequence


class CannotListen(OSError):  # noqa: N818 - it is what the agent cannot do, not a bug
    """An address cannot be listened on; the message is one line that names it."""


class WebConfigError(ValueError):
    """A web configuration that cannot be used; holds every fault found, each with its place."""

    def __init__(self, faults: Sequence[str]) -> None:
        """Take one line per fault, each naming file, key, value and what would be right."""
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)
