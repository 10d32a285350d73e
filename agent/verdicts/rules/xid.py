"""XID errors: what the driver reports to the kernel log, by a table of meanings and severities.

A code is an event, not a state: it speaks for a while and then falls silent. What lasts is seen by the
rules that read the card itself.
"""

import functools
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Final, Literal

import msgspec

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion, Window

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NAME = "xid"
Severity = Literal["inform", "watch", "faulty"]
_RANK: Final[Mapping[Severity, int]] = {"faulty": 0, "watch": 1, "inform": 2}


class Xid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a code means."""

    meaning: str
    severity: Severity
    next_action: str


UNLISTED: Final = Xid(
    meaning="A code without an entry in the table.",
    severity="watch",
    next_action="Look it up in NVIDIA's list of XID errors.",
)


@functools.cache
def table() -> Mapping[int, Xid]:
    """Return the entries by code."""
    text = (resources.files("agent") / "data" / "xid.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), type=dict[int, Xid], strict=False)


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` while a serious code speaks, else ``ok`` while another is worth a mention."""
    if keys.XID_TIME not in view.card.values:
        return None
    limits = thresholds.xid
    now_s = view.now_wall_s
    speaking = []
    for wall_s, code in _events(view.recent, view.minutes).items():
        entry = table().get(code, UNLISTED)
        hold_s = limits.hold_s if entry.severity == "faulty" else limits.mention_s
        if now_s - wall_s <= hold_s and code not in limits.off:
            speaking.append((_RANK[entry.severity], -wall_s, code, entry))
    if not speaking:
        return None
    _, _, code, entry = min(speaking, key=lambda event: event[:2])
    return Conclusion(
        state="faulty" if entry.severity == "faulty" else "ok",
        cause=f"xid_{code}",
        summary=f"XID {code}: {entry.meaning}",
        next_action=entry.next_action,
        evidence={"xid_code": float(code), "events": float(len(speaking))},
        suspect=entry.severity == "watch",
    )


def _events(*windows: Window) -> dict[float, int]:
    """Return the codes that were seen as the last one, by the wall time at which each came."""
    events: dict[float, int] = {}
    for window in windows:
        codes, times = window.columns.get(keys.XID_CODE), window.columns.get(keys.XID_TIME)
        if codes and times:
            events.update((wall_s, int(code)) for wall_s, code in zip(times, codes, strict=True) if code == code)
    return events


RULE = CardRule(NAME, judge)
