"""How fast a card is against its own past, and how its neighbours fare: what the rules on slow cards share."""

import statistics
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from agent.config.settings import DegradedSettings
from agent.model.probe import ProbeRecord
from agent.model.reference import Reference, circumstances_of, current_reference, series_of
from agent.verdicts.measurements import JUDGED_PAIR, Line, Measurement, lines, means, measure, usable_reference
from agent.verdicts.references import latest_of_line
from agent.verdicts.track import RUN_GAP_S, Track, follow
from agent.verdicts.view import CardView

LEAST_PEERS: Final = 3
"""Peers from which their median tells what the node does to all cards."""
LEAST_SLOW: Final = 2
"""Slow measurements in a row from which a card counts as having fallen, alone or with others."""
PEER_AGE_S: Final = 5400.0
"""A peer's measurement this long before says how the node was doing."""


class Standing(msgspec.Struct, frozen=True):
    """One line of one card: the latest judged run, and what all of them add up to.

    Beside each figure's line there is one of the mean of the two that a run judges, once both have references.
    """

    line: Line
    latest: ProbeRecord
    runs: Sequence[ProbeRecord]
    """All that may be compared, oldest first; empty for the mean of two figures."""
    measurements: tuple[Measurement, ...]
    """Those with a usable reference, oldest first."""
    track: Track
    compared: bool
    """Whether a reference counts for the latest run."""
    disputed: bool
    """Whether the latest run's reference waits for an operator."""
    carried: bool
    """Whether the card was slow under the reference before, and nothing since has settled it."""

    def median_since(self, wall_s: float, of: Callable[[Measurement], float]) -> float:
        """Return the median of what the measurements since then show; there is at least one."""
        return statistics.median(of(one) for one in self.measurements if one.wall_s >= wall_s - RUN_GAP_S)

    def measured_since(self, wall_s: float) -> bool:
        """Return whether the card was measured at ``wall_s`` or after, or within the run before."""
        return bool(self.measurements) and self.measurements[-1].wall_s >= wall_s - RUN_GAP_S


Neighbours = Sequence[Mapping[Line, Standing]]
"""Where each of the other cards of the node stands."""


_Standings = Mapping[Line, Standing]
_Made = tuple[tuple[ProbeRecord, ...], tuple[Reference, ...], DegradedSettings, _Standings, _Standings]
_made: Final[dict[str, _Made]] = {}
"""By card: what was replayed last, and what came out. Same objects in, same standings out."""
MOST_MADE: Final = 64


def standings(view: CardView, limits: DegradedSettings) -> Mapping[Line, Standing]:
    """Return where a card stands on the line of each figure it was judged on."""
    return _replayed(view, limits)[3]


def followed(view: CardView, limits: DegradedSettings) -> Mapping[Line, Standing]:
    """Return the same, and where it stands by the mean of the figures that a run judges, where it has one.

    The mean is less noisy than either: what slows both is seen sooner by it.
    """
    return _replayed(view, limits)[4]


def _replayed(view: CardView, limits: DegradedSettings) -> _Made:
    """Replay a card's history, once, however many rules and neighbours ask for it."""
    uuid = view.card.identity.uuid
    made = _made.get(uuid)
    if made is None or made[0] is not view.probes or made[1] is not view.references or made[2] is not limits:
        found = {line: _standing(line, runs, view, limits) for line, runs in lines(view.probes).items()}
        if len(_made) >= MOST_MADE:
            _made.clear()
        made = _made[uuid] = (view.probes, view.references, limits, found, {**found, **dict(_of_both(found, limits))})
    return made


def peers_of(view: CardView, limits: DegradedSettings) -> Neighbours:
    """Return where each peer stands, the mean of its figures included."""
    return [followed(peer, limits) for peer in view.peers]


def against_peers(standing: Standing, peers: Sequence[Standing], limits: DegradedSettings) -> Track:
    """Return the card's track with what the node does to all cards taken out of its drift.

    For each measurement that is the median of what the peers measured shortly before; where too few did,
    what the card's temperature explains.
    """
    if len(peers) < LEAST_PEERS:
        return standing.track
    times = [[one.wall_s for one in peer.measurements] for peer in peers]
    differenced = []
    for one in standing.measurements:
        at = [bisect_right(of_peer, one.wall_s) - 1 for of_peer in times]
        near = [
            peer.measurements[index].deviation
            for peer, index in zip(peers, at, strict=True)
            if index >= 0 and one.wall_s - peer.measurements[index].wall_s <= PEER_AGE_S
        ]
        if len(near) >= LEAST_PEERS:
            one = msgspec.structs.replace(one, corrected=one.deviation - statistics.median(near))
        differenced.append(one)
    return follow(differenced, limits)


def level_is_shared(one: Standing, neighbours: Neighbours) -> bool:
    """Return whether the card's slow runs are shared by half of the node's cards.

    One slow measurement says nothing yet: two cards may each have an outlier in the same hour.
    """
    level = one.track.level
    onset_s = level.onset_wall_s if level.degraded or level.slow >= LEAST_SLOW else None
    return onset_s is not None and _is_shared(one, neighbours, onset_s, lambda measured: measured.deviation)


def drift_is_shared(one: Standing, neighbours: Neighbours) -> bool:
    """Return whether the card's drift is shared by half of the node's cards."""
    drift = one.track.drift
    if drift.onset_wall_s is None or not drift.drifting:
        return False
    return _is_shared(one, neighbours, drift.onset_wall_s, lambda measured: measured.corrected)


def witnesses_of(one: Standing, neighbours: Neighbours, wall_s: float) -> list[Standing]:
    """Return the neighbours that were measured on the same line at ``wall_s`` or after."""
    return [peer[one.line] for peer in neighbours if one.line in peer and peer[one.line].measured_since(wall_s)]


def _is_shared(one: Standing, neighbours: Neighbours, onset_s: float, of: Callable[[Measurement], float]) -> bool:
    """Return whether at least half of the cards that tell, and at least two, were slow since ``onset_s``.

    A neighbour tells if it was measured since, and was slow if it lost at least half of what this card lost,
    median against median: so that the answer stays the same while they recover one after the other.
    """
    if not one.compared:
        return False
    lost = one.median_since(onset_s, of)
    witnesses = witnesses_of(one, neighbours, onset_s)
    slow = 1 + sum(other.median_since(onset_s, of) <= lost / 2.0 for other in witnesses)
    return slow >= 2 and 2 * slow >= 1 + len(witnesses)


def _standing(line: Line, runs: Sequence[ProbeRecord], view: CardView, limits: DegradedSettings) -> Standing:
    latest = runs[-1]
    measured = tuple(measure(runs, view.references))
    compared = usable_reference(latest, view.references) is not None
    exact = current_reference(view.references, latest.uuid, series_of(latest.result), circumstances_of(latest))
    track = follow(measured, limits)
    before = latest_of_line(view.references, latest.uuid, line)
    return Standing(
        line=line,
        latest=latest,
        runs=runs,
        measurements=measured,
        track=track,
        compared=compared,
        disputed=not compared and exact is not None,
        carried=not compared and (track.condemned or (before is not None and before.degraded_before)),
    )


def _of_both(found: Mapping[Line, Standing], limits: DegradedSettings) -> Iterator[tuple[Line, Standing]]:
    """Yield the line of the mean of the two judged figures, by data type."""
    product, step = JUDGED_PAIR
    for (probe, dtype), one in found.items():
        other = found.get((step, dtype)) if probe == product else None
        pairs = means(one.measurements, other.measurements) if other else ()
        if other is None or not pairs:
            continue
        line = (f"{product} and {step}", dtype)
        track = follow(pairs, limits)
        compared = one.compared and other.compared
        carried = not compared and track.condemned
        yield line, Standing(line, other.latest, (), pairs, track, compared, disputed=False, carried=carried)
