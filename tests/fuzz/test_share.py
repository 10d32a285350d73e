"""A share of the fuzzing with a fixed seed, for every run of the tests."""

import pytest

from tests.fuzz.run import fuzz
from tests.fuzz.targets import TARGETS

INPUTS = 20_000


@pytest.mark.parametrize("name", [target.name for target in TARGETS])
def test_every_promise_is_kept(name: str) -> None:
    """Each input is refused with our own error or gives what lies within its bounds; some of either."""
    share = next(target.share for target in TARGETS if target.name == name)
    run = fuzz(name, round(INPUTS * share), seed=20261130)
    assert 0 < run.accepted < run.inputs


def test_shares_add_up() -> None:
    """A million inputs are a million inputs."""
    assert sum(target.share for target in TARGETS) == pytest.approx(1.0)
