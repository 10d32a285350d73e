"""The last record of each kind, as snapshot, page and scrape show it."""

import threading

from agent.model.probe import ProbeRecord

Group = tuple[str, str, str, str]
Kind = tuple[str, str]


class LastRecords:
    """The last good record of each figure, and after it the last failure where that is newer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._good: dict[tuple[Group, Kind], ProbeRecord] = {}
        self._failed: dict[Group, ProbeRecord] = {}

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
            else:
                self._failed[group] = record

    def all(self) -> tuple[ProbeRecord, ...]:
        """Return them in a steady order."""
        with self._lock:
            good = [record for _, record in sorted(self._good.items(), key=lambda item: item[0])]
            failed = [record for _, record in sorted(self._failed.items(), key=lambda item: item[0])]
            return (*good, *failed)
