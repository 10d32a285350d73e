"""What JSON knows in place of what it does not: the encoder hook of every struct that holds a read-only mapping."""

from collections.abc import Mapping


def plain(value: object) -> object:
    """Return a read-only mapping as a dict.

    Raises:
        NotImplementedError: there is nothing to put in its place.
    """
    if isinstance(value, Mapping):
        return dict(value)
    raise NotImplementedError(f"{type(value).__name__} has no JSON form; expected a mapping")
