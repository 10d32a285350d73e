"""Entry of the probe child: ``python -m workloads RESULT_FD``, the specification on standard input."""

from __future__ import annotations

import sys

from workloads import session, spec
from workloads.emit import Emitter
from workloads.timing import SystemClock

EXIT_USAGE = 2
EXIT_NO_READER = 3


def main() -> None:
    """Read the specification and answer it; ends the process with 0, 2 (unfit input) or 3 (nobody reads the results)."""
    clock = SystemClock()
    started_s = clock.monotonic_s()
    arguments = sys.argv[1:]
    try:
        if len(arguments) != 1 or not arguments[0].isdigit():
            raise spec.SpecError("arguments %r, want RESULT_FD, an open descriptor's number" % (arguments,))
        asked = spec.parse(sys.stdin.buffer.read().decode("utf-8"))
    except (spec.SpecError, UnicodeDecodeError) as error:
        sys.stderr.write("workloads: %s\n" % error)
        sys.exit(EXIT_USAGE)
    try:
        session.run(asked, Emitter(int(arguments[0])), clock, started_s)
    except OSError as error:
        sys.stderr.write("workloads: results cannot be written: %s\n" % error)
        sys.exit(EXIT_NO_READER)


if __name__ == "__main__":
    main()
