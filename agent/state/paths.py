"""Where the state lives."""

from collections.abc import Mapping
from pathlib import Path

DATABASE_NAME = "heatsoak.db"
LOCK_NAME = "heatsoak.lock"


def state_directory(configured: str, environ: Mapping[str, str], uid: int) -> Path:
    """Return the state directory: the first that is named, from the command line to the user's own default.

    Order: ``configured`` (``--state-dir`` or ``agent.state_dir``), HEATSOAK_STATE_DIR, $STATE_DIRECTORY as
    systemd sets it (the first of several), /var/lib/heatsoak for root, else the XDG state home.
    """
    if configured:
        return Path(configured)
    if environ.get("HEATSOAK_STATE_DIR"):
        return Path(environ["HEATSOAK_STATE_DIR"])
    by_systemd = environ.get("STATE_DIRECTORY", "").split(":")[0]
    if by_systemd:
        return Path(by_systemd)
    if uid == 0:
        return Path("/var/lib/heatsoak")
    state_home = environ.get("XDG_STATE_HOME", "")
    if not Path(state_home).is_absolute():
        state_home = str(Path(environ.get("HOME", "/")) / ".local" / "state")
    return Path(state_home) / "heatsoak"
