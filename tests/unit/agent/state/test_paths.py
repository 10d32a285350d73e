"""Where the state lives."""

from pathlib import Path

import pytest

from agent.state.paths import state_directory


@pytest.mark.parametrize(
    ("configured", "environ", "uid", "expected"),
    [
        ("/a", {"HEATSOAK_STATE_DIR": "/b", "STATE_DIRECTORY": "/c"}, 0, "/a"),
        ("", {"HEATSOAK_STATE_DIR": "/b", "STATE_DIRECTORY": "/c"}, 0, "/b"),
        ("", {"STATE_DIRECTORY": "/c:/d"}, 0, "/c"),
        ("", {}, 0, "/var/lib/heatsoak"),
        ("", {"XDG_STATE_HOME": "/x", "HOME": "/home/u"}, 1000, "/x/heatsoak"),
        ("", {"XDG_STATE_HOME": "relative", "HOME": "/home/u"}, 1000, "/home/u/.local/state/heatsoak"),
        ("", {"HOME": "/home/u"}, 1000, "/home/u/.local/state/heatsoak"),
    ],
)
def test_first_named_place_wins(configured: str, environ: dict[str, str], uid: int, expected: str) -> None:
    """The order is command line, own variable, systemd's, root's place, the user's state home."""
    assert state_directory(configured, environ, uid) == Path(expected)
