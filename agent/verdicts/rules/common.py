"""What several rules ask of a view."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardView, Window

CONFIRM_S = 25.0
"""Long enough that what is read each 10 s was read twice: no verdict from one sample."""


def busy_ratio(view: CardView, span_s: float) -> float | None:
    """Return the mean utilisation over the span, 0 to 1; None unless it is known well enough."""
    return view.recent.mean(keys.UTILIZATION, span_s)


def held_share(recent: Window, reason: str, span_s: float) -> float | None:
    """Return the share of the span in which the clocks were held down for ``reason``, 0 to 1.

    The larger of what the samples show and of what was counted between them; None where neither is known.
    """
    sampled = recent.share(keys.active(reason), span_s)
    counted_s = recent.increase(keys.busy_seconds(reason), span_s) if sampled is not None else None
    if counted_s is None:
        return sampled
    return max(sampled or 0.0, min(1.0, counted_s / span_s))


def throttle_share(view: CardView, thresholds: VerdictSettings, rule: str, *reasons: str) -> float | None:
    """Return the largest share among ``reasons`` if the card is busy and the share is beyond the threshold.

    What already holds stays until the share over twice the time falls below half the threshold.
    """
    limits = thresholds.throttle
    busy = busy_ratio(view, limits.window_s)
    if busy is None or busy < limits.busy_ratio:
        return None
    held = rule in view.held
    needed = limits.share / 2 if held else limits.share
    spans_s = (2 * limits.window_s, limits.window_s) if held else (limits.window_s,)
    share = max((_first_known(view.recent, reason, spans_s) for reason in reasons), default=0.0)
    return share if share >= needed else None


def _first_known(recent: Window, reason: str, spans_s: tuple[float, ...]) -> float:
    """Return the share over the first of the spans that the past covers; 0 where it covers none."""
    shares = (held_share(recent, reason, span_s) for span_s in spans_s)
    return next((share for share in shares if share is not None), 0.0)


def confirmed(recent: Window, key: str, at_least: float = 1.0) -> float | None:
    """Return the newest value if it and all before it for ``CONFIRM_S`` were ``at_least`` that."""
    values = recent.covered(key, CONFIRM_S)
    return values[-1] if values and min(values) >= at_least else None
