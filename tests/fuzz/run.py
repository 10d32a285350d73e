"""Runs a target over so many inputs."""

import time
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.fuzz.mutation import inputs
from tests.fuzz.targets import TARGETS


class Run(NamedTuple):
    """What came of one run; ``accepted`` counts the inputs that were good in the reader's eyes."""

    name: str
    inputs: int
    accepted: int
    seconds: float


def fuzz(name: str, count: int, seed: int) -> Run:
    """Run the target of that name.

    Raises:
        AssertionError: an input broke a promise; the message holds it, as bytes to be put into a test.
    """
    target = next(target for target in TARGETS if target.name == name)
    accepted, begin_s, data = 0, time.monotonic(), b""
    with TemporaryDirectory(prefix="heatsoak-fuzz-") as folder:
        check = target.make(Path(folder))
        try:
            for data in islice(inputs(target.corpus(), target.words, seed), count):
                accepted += check(data)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {data!r}: {type(error).__name__}: {error}") from error
    return Run(name, count, accepted, time.monotonic() - begin_s)
