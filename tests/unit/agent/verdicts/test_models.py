"""The shipped table of models."""

from agent.verdicts.models import models


def test_every_floor_says_where_it_comes_from() -> None:
    """A number without a source does not ship; a spread neither."""
    for name, model in models().items():
        assert name == model.name
        assert model.floors
        assert (model.spread is None) == (model.spread_source == "")
        assert all(floor.value > 0 and len(floor.source) > 20 for floor in model.floors)


def test_figures_that_may_condemn_name_their_shape() -> None:
    """A floor of our own runs holds for the figure it was measured on, not for others of its kind."""
    own = [floor for model in models().values() for floor in model.floors if floor.basis == "own_runs"]
    assert own
    assert all(floor.shape for floor in own)
