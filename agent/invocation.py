"""How the command line was called: what every command starts from."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent.config.load import load
from agent.config.settings import Settings
from agent.state.paths import state_directory

CONTROL_NAME = "control.sock"


class Invocation(msgspec.Struct, frozen=True):
    """Options that stand before the command, and the environment."""

    environ: Mapping[str, str]
    uid: int
    config_path: str | None = None
    state_dir: str = ""

    def settings(self) -> Settings:
        """Return the settings.

        Raises:
            ConfigError: there are faults; it holds all of them.
        """
        return load(self.config_path, self.environ)

    def state_directory(self, settings: Settings) -> Path:
        """Return where the state lives; absolute, since children run in directories of their own."""
        return state_directory(self.state_dir or settings.agent.state_dir, self.environ, self.uid).absolute()

    def control_socket(self, settings: Settings) -> Path:
        """Return where a running agent listens for its operator."""
        return self.state_directory(settings) / CONTROL_NAME
