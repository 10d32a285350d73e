"""A card far below the others of its model in this node, whatever it was delivered as."""

import statistics
from collections.abc import Sequence

from agent.config.settings import DegradedSettings, VerdictSettings
from agent.model.probe import ProbeRecord
from agent.model.reference import circumstances_of, series_of
from agent.verdicts.models import model_of
from agent.verdicts.standing import peers_of, standings
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "below_peers"
PEER_AGE_S = 86400.0
"""A peer's runs older than this are not compared with."""
_Runs = Sequence[ProbeRecord]


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` where the card's last runs all lie beyond what good cards of its model differ by.

    Below ``peers_drop`` but within that it is ``ok`` and only mentioned: in a node of eight good cards with a
    spread of 2 % the worst is 5 % below the others in one node of twenty.
    """
    limits = thresholds.degraded
    known = model_of(view.card.identity.name)
    spread = known.spread if known is not None and known.spread is not None else limits.unknown_spread
    condemned = max(limits.peers_drop, limits.peers_sigma * spread)
    neighbours = peers_of(view, limits)
    for line, own in standings(view, limits).items():
        runs, others = own.runs, [peer[line].runs for peer in neighbours if line in peer]
        worst = _shortfall(_last(runs, limits), others, limits)
        if worst is not None and worst >= limits.peers_drop:
            return _below(f"{line[0]} {line[1]}", worst, condemned, suspect=len(runs) < limits.confirm_measurements)
    return None


def _shortfall(last: Sequence[ProbeRecord], others: Sequence[_Runs], limits: DegradedSettings) -> float | None:
    """Return by which share the best of the last runs lies below the peers' median; None without peers."""
    figures = []
    for runs in others:
        near = [run for run in _last(runs, limits) if _alike(run, last[-1])]
        if near:
            figures.append(statistics.median(run.result.value or 0.0 for run in near))
    if not figures or len(last) < limits.confirm_measurements:
        return None
    return 1.0 - max(run.result.value or 0.0 for run in last) / statistics.median(figures)


def _last(runs: _Runs, limits: DegradedSettings) -> _Runs:
    return runs[-limits.confirm_measurements :]


def _alike(run: ProbeRecord, other: ProbeRecord) -> bool:
    """Return whether two cards' runs can be compared: same figure, method and software, about the same time."""
    same = series_of(run.result) == series_of(other.result) and circumstances_of(run)[:3] == circumstances_of(other)[:3]
    return same and abs(run.wall_s - other.wall_s) <= PEER_AGE_S


def _below(title: str, shortfall: float, condemned: float, *, suspect: bool) -> Conclusion:
    beyond = shortfall >= condemned
    return Conclusion(
        state="degraded" if beyond else "ok",
        cause="beyond_spread" if beyond else "within_spread",
        summary=f"{title} is {shortfall:.1%} below the median of the other cards of its model in this node.",
        next_action=(
            "Compare its power limit, clocks and temperature with its neighbours'; if they are alike, replace it."
            if beyond
            else "None: good cards of one model may differ by that much."
        ),
        evidence={"shortfall_ratio": shortfall, "threshold_ratio": condemned},
        suspect=suspect and beyond,
    )


RULE = CardRule(NAME, judge, inputs="probes")
