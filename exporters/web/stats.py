"""What the web server counts about itself."""

from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from typing import Final, Literal

from prometheus_client.core import Metric as Family

from exporters.families import counter, gauge, single

CutReason = Literal["crowded", "too_slow", "client_left", "tls_failed", "certificate_refused"]
_CUT_REASONS: Final[tuple[CutReason, ...]] = (
    "crowded",
    "too_slow",
    "client_left",
    "tls_failed",
    "certificate_refused",
)


class WebStats:
    """Counters of the web server; only its own thread writes them."""

    def __init__(self) -> None:
        self.connections = 0
        self.requests: Counter[HTTPStatus] = Counter({HTTPStatus.OK: 0})
        self.cut: Counter[CutReason] = Counter(dict.fromkeys(_CUT_REASONS, 0))
        self.reload_ok: bool | None = None
        """Whether the web configuration last read could be used; None without one."""

    def families(self) -> Iterator[Family]:
        """Yield the counters as metric families."""
        yield single(gauge("heatsoak_web_connections", "Open connections."), self.connections)
        requests = counter("heatsoak_web_requests_total", "Requests answered, by status code.")
        for status, count in sorted(self.requests.items()):
            single(requests, count, {"code": str(int(status))})
        cut = counter("heatsoak_web_connections_cut_total", "Connections that ended before their time, by reason.")
        for reason, count in self.cut.items():
            single(cut, count, {"reason": reason})
        yield from (requests, cut)
        if self.reload_ok is not None:
            text = "Whether the web configuration as it stands on disk is in use."
            yield single(gauge("heatsoak_web_config_reload_success", text), self.reload_ok)
