"""A card below what its model is known to reach."""

from agent.config.settings import VerdictSettings
from agent.verdicts.measurements import lines
from agent.verdicts.models import Floor, model_of
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "below_floor"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` where the last runs all lie below a floor measured by heatsoak itself.

    A floor derived from published figures, made by another method, is ``ok``: it informs.
    """
    model = model_of(view.card.identity.name)
    if model is None:
        return None
    needed = thresholds.degraded.confirm_measurements
    for runs in lines(view.probes).values():
        floor = model.floor_for(runs[-1].result)
        best = max(run.result.value or 0.0 for run in runs[-needed:])
        if floor is not None and len(runs) >= needed and best < floor.value:
            return _below(model.name, floor, best)
    return None


def _below(model: str, floor: Floor, best: float) -> Conclusion:
    own = floor.basis == "own_runs"
    return Conclusion(
        state="degraded" if own else "ok",
        cause=floor.basis,
        summary=f"{floor.probe} {floor.dtype} reaches {best / floor.value:.0%} of the least expected of a {model}.",
        next_action=(
            "Check power limit, clocks and cooling; if those are right, run `heatsoak probe matmul`, and replace it."
            if own
            else "None by itself: the floor comes from published figures, made by another method."
        ),
        evidence={"value": best, "floor": floor.value},
    )


RULE = CardRule(NAME, judge, inputs="probes")
