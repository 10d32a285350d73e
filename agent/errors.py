"""Errors of our own: each says what is wrong, where, and what would be right."""

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_CANNOT_LISTEN = 3
EXIT_BAD_CARD = 10
EXIT_UNKNOWN_CARD = 11
EXIT_INTERNAL = 70


def reason_of(error: Exception) -> str:
    """Return what ``error`` says went wrong; of a file error without the path, which the message around it names."""
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__


class HeatsoakError(Exception):
    """Root of all foreseeable errors; ``exit_code`` is what a command ends with."""

    exit_code = EXIT_INTERNAL


class ConfigError(HeatsoakError):
    """A configuration or command line that cannot be used; holds every fault found."""

    exit_code = EXIT_USAGE

    def __init__(self, faults: list[str]) -> None:
        """Take one line per fault, each naming file, key, value and what would be right."""
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


class ListenError(HeatsoakError):
    """The address cannot be listened on."""

    exit_code = EXIT_CANNOT_LISTEN


class StateError(HeatsoakError):
    """The state directory cannot be used, or another agent holds it."""

    exit_code = EXIT_USAGE
