"""Tests of agent.verdicts.keys."""

from agent.model.quantities import BY_KEY
from agent.verdicts import keys

OURS = {keys.LOST, keys.SILENT}


def test_every_key_that_is_remembered_is_a_quantity() -> None:
    """A key that no reader fills would silence its rule without a word."""
    remembered = {*keys.RECENT, *keys.MINUTE_GAUGES, *keys.MINUTE_COUNTERS} - OURS

    assert remembered <= set(BY_KEY)


def test_every_key_that_rules_read_is_a_quantity() -> None:
    """The same for what is read from the latest snapshot only."""
    named = {
        value
        for name, value in vars(keys).items()
        if name.isupper()
        and isinstance(value, str)
        and name not in ("LOST", "SILENT", "NVML_UP", "CARDS_PRESENT", "HUNG")
    }

    assert named <= set(BY_KEY)


def test_what_is_remembered_for_hours_counts_or_is_averaged() -> None:
    """Gauges are averaged over a minute, counters keep their latest value."""
    assert all(BY_KEY[key].kind == "gauge" for key in keys.MINUTE_GAUGES)
    assert set(keys.MINUTE_GAUGES).isdisjoint(keys.MINUTE_COUNTERS)
