"""The status page: server-rendered, no script, nothing loaded from anywhere, usable on a phone."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agent.model.snapshot import Snapshot
from exporters.board import SampleKey
from exporters.view import page_view

_TEMPLATES = Path(__file__).parent / "templates"


class StatusPage:
    """Renders snapshots as HTML; every text from outside is escaped by the template engine."""

    def __init__(self, *, version: str, host_rates: Callable[[], Mapping[SampleKey, float]]) -> None:
        """Take the agent's version and where rates of host counters come from."""
        self._version = version
        self._host_rates = host_rates
        environment = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        style = (_TEMPLATES / "status.css").read_text(encoding="utf-8")
        environment.globals["style"] = Markup(style)  # noqa: S704 - our own file, of which the policy names the hash
        self._template = environment.get_template("status.html")
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self.content_security_policy = (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
            "frame-ancestors 'none'"
        )

    def render(self, snapshot: Snapshot, *, fresh: bool = True) -> bytes:
        """Return the page of ``snapshot``; of one that is not ``fresh``, without readings."""
        view = page_view(snapshot, self._host_rates(), version=self._version, fresh=fresh)
        return self._template.render(page=view).encode("utf-8", "replace")
