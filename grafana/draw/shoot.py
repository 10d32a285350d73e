"""Pictures of all dashboards, light and dark: `python -m grafana.draw.shoot DIST FLEET OUT`, with Chromium.

DIST is what `npm run build` made, FLEET the directory that `grafana.draw.fleet` serves.
"""

import functools
import http.server
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from deploy.demo.story import NODES, identity
from grafana.build import BOARDS, ROOT
from grafana.draw.fleet import PORT
from grafana.model import Dashboard, dashboard_json

WIDTH: Final = 1600
CELL, HEAD = 38, 64
"""Pixels of a grid's row and of the title, as in main.tsx."""
_CHOICES: Final[Mapping[str, Mapping[str, str]]] = {
    "heatsoak-fleet": {},
    "heatsoak-node": {"var-node": NODES[0].name},
    "heatsoak-burnin": {"var-node": NODES[0].name},
    "heatsoak-pipeline": {"var-node": NODES[1].name},
    "heatsoak-card": {"var-uuid": identity(NODES[0], 5).uuid},
}
_CHROMIUM: Final = (
    "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=20000",
)  # fmt: skip


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(dist: Path, fleet: Path, out: Path) -> None:
    """Draw every board in both themes into ``out``; say on standard error which panels failed."""
    shutil.copytree(ROOT / "grafana" / "dashboards", dist / "dashboards", dirs_exist_ok=True)
    handler = functools.partial(_Quiet, directory=str(dist))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for board in BOARDS:
            for theme in ("light", "dark"):
                parts = {"board": board.uid, "theme": theme, "hours": "2", "end": (fleet / "end").read_text()}
                parts |= {"prometheus": f"http://127.0.0.1:{PORT}", "width": str(WIDTH), **_CHOICES[board.uid]}
                url = f"http://127.0.0.1:{server.server_address[1]}/?{urllib.parse.urlencode(parts)}"
                name = board.uid.removeprefix("heatsoak-")
                _shoot(url, board, out / f"{name}-{theme}.png")
        server.shutdown()


def _shoot(url: str, board: Dashboard, path: Path) -> None:
    places = [panel["gridPos"] for panel in dashboard_json(board)["panels"]]
    height = max(place["y"] + place["h"] for place in places) * CELL + HEAD
    with tempfile.TemporaryDirectory() as profile:
        command = [*_CHROMIUM, f"--user-data-dir={profile}", f"--window-size={WIDTH},{height}"]
        page = subprocess.run([*command, "--dump-dom", url], capture_output=True, text=True, check=True).stdout
        if "data-error" in page or "data-drawn" not in page:
            sys.stderr.write(f"{path.name}: a panel failed, or none was drawn\n")
        subprocess.run([*command, f"--screenshot={path}", url], capture_output=True, check=True)


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:4]))
