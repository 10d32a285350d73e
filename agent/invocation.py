"""How the command line was called: what every command starts from."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent.config.load import load
from agent.config.settings import Settings
from agent.state.paths import state_directory

CONTROL_NAME = "control.sock"


def _no_web(path: Path) -> tuple[str, ...]:  # noqa: ARG001 - without a web server nothing can be wrong with it
    return ()


class Invocation(msgspec.Struct, frozen=True):
    """Options that stand before the command, the environment, and what only the composition root can do."""

    environ: Mapping[str, str]
    uid: int
    config_path: str | None = None
    state_dir: str = ""
    web_faults: Callable[[Path], tuple[str, ...]] = _no_web
    """Returns a line for each fault of the web configuration in a file."""

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
