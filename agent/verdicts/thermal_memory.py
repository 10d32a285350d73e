"""Remembers each card's thermal resistance over months: its first samples and its latest."""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent.verdicts.rules.thermal_resistance import BASELINE, measure
from agent.verdicts.since import Documents
from agent.verdicts.view import ResistanceSample, Window

KEPT: Final = BASELINE + 30
APART_S: Final = 1800.0
"""Samples are at least this far apart, so that one long load is not the whole history."""
DOCUMENT: Final = "thermal_resistance"

_Samples = tuple[ResistanceSample, ...]


class ThermalMemory:
    """Samples by card, oldest first, kept over restarts."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._samples: dict[str, _Samples] = dict(_load(documents))

    def of(self, uuid: str) -> _Samples:
        """Return the card's samples."""
        return self._samples.get(uuid, ())

    def watch(self, uuid: str, recent: Window, minutes: Window, wall_s: float) -> None:
        """Measure the card's present load if the last sample is old enough."""
        samples = self.of(uuid)
        if samples and abs(wall_s - samples[-1].wall_s) < APART_S:
            return
        sample = measure(recent, minutes, wall_s)
        if sample is None:
            return
        samples = (*samples, sample)
        if len(samples) > KEPT:
            samples = (*samples[:BASELINE], *samples[BASELINE + 1 :])
        self._samples[uuid] = samples
        self._documents.save_document(DOCUMENT, msgspec.json.encode(self._samples))


def _load(documents: Documents) -> Mapping[str, _Samples]:
    """Return what was remembered; nothing where the document is missing or not ours."""
    data = documents.load_document(DOCUMENT)
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, _Samples])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
