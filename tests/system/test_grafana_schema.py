"""The dashboards' JSON against Grafana's own types, @grafana/schema from npm; needs node and the npm registry."""

import json
import subprocess
from pathlib import Path

import pytest

from grafana.build import ROOT
from grafana.schema import typescript

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]
HOME = ROOT / ".build" / "grafana-schema"
PACKAGES = {"@grafana/schema": "12.4.0", "typescript": "5.6.3"}
TSC = (
    "node_modules/.bin/tsc --noEmit --strict --skipLibCheck --module esnext --moduleResolution bundler --target es2022"
)


@pytest.fixture(scope="module")
def compiler() -> Path:
    """Install Grafana's types and the compiler, once, into the build folder; return it."""
    HOME.mkdir(parents=True, exist_ok=True)
    wanted = json.dumps({"private": True, "dependencies": PACKAGES})
    manifest = HOME / "package.json"
    if not (HOME / "node_modules").is_dir() or manifest.read_text() != wanted:
        manifest.write_text(wanted)
        command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(command, cwd=HOME, check=True, capture_output=True, timeout=500)
    return HOME


def complaints(home: Path, text: str) -> str:
    """Return what the compiler says of a module."""
    (home / "boards.ts").write_text(text)
    done = subprocess.run([*TSC.split(), "boards.ts"], cwd=home, check=False, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_every_key_and_word_is_grafanas(compiler: Path) -> None:
    """Dashboards, panels' options and field options."""
    assert complaints(compiler, typescript()) == ""


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"graphTooltip"', '"graphTooltips"'),
        ('"drawStyle": "line"', '"drawStyle": "lines"'),
        ('"cellHeight"', '"cellHigh"'),
    ],
)
def test_a_wrong_key_or_word_is_noticed(compiler: Path, right: str, wrong: str) -> None:
    """Otherwise the check above would say nothing."""
    assert complaints(compiler, typescript().replace(right, wrong)) != ""
