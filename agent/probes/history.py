"""The last record of each kind, as snapshot, page and scrape show it."""

import threading
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent.model.probe import ProbeRecord
from agent.model.reference import Series, series_of

Group = tuple[str, str, str, str]
Kind = tuple[str, str]
_KEPT: Final = 40
"""Values of a figure kept for its line on the page."""


class LastRecords:
    """The last good record of each figure, and after it the last failure where that is newer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._good: dict[tuple[Group, Kind], ProbeRecord] = {}
        self._failed: dict[Group, ProbeRecord] = {}
        self._values: Mapping[tuple[str, Series], tuple[float, ...]] = MappingProxyType({})

    def add(self, record: ProbeRecord) -> None:
        """Take a finished record; skipped and aborted runs say nothing new and leave the last one in its place."""
        result = record.result
        if result.status in ("skipped", "aborted"):
            return
        group = (record.uuid, result.probe, result.dtype, result.mode)
        with self._lock:
            if result.status == "ok":
                self._failed.pop(group, None)
                self._good[(group, (result.variant, result.shape))] = record
                self._keep_value(record)
            else:
                self._failed[group] = record

    def all(self) -> tuple[ProbeRecord, ...]:
        """Return them in a steady order."""
        with self._lock:
            good = [record for _, record in sorted(self._good.items(), key=lambda item: item[0])]
            failed = [record for _, record in sorted(self._failed.items(), key=lambda item: item[0])]
            return (*good, *failed)

    def values(self) -> Mapping[tuple[str, Series], tuple[float, ...]]:
        """Return the latest good values of each figure, oldest first, by the card's UUID and the series."""
        return self._values

    def _keep_value(self, record: ProbeRecord) -> None:
        if record.result.value is not None:
            key = (record.uuid, series_of(record.result))
            kept = (*self._values.get(key, ()), record.result.value)[-_KEPT:]
            self._values = MappingProxyType({**self._values, key: kept})
