"""The agent with a tick shorter than its configuration allows: every part of it is the real one.

SOAK_TICK_S is the period; the command line is that of ``heatsoak run``.
"""

import argparse
import os
import sys

import agent.logs as logs

# isort: split
import msgspec

import heatsoak
from agent.clock import SystemClock
from agent.invocation import Invocation


def main() -> None:
    """Run until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config")
    parser.add_argument("--state-dir", default="")
    parser.add_argument("command", choices=["run"])
    arguments = parser.parse_args()
    environ = dict(os.environ)
    invocation = Invocation(environ, os.geteuid(), arguments.config, arguments.state_dir)
    settings = invocation.settings()
    pace = msgspec.structs.replace(settings.agent, tick_s=float(environ["SOAK_TICK_S"]))
    logs.configure(settings.log, environ, sys.stderr)
    heatsoak.Agent(invocation, msgspec.structs.replace(settings, agent=pace), None, SystemClock()).run()


if __name__ == "__main__":
    main()
