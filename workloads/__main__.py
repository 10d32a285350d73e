"""Entry of the probe child: ``python -m workloads RESULT_FD``, the specification on standard input."""

from __future__ import annotations

import sys

from workloads import session, spec
from workloads.emit import Emitter
from workloads.timing import SystemClock

EXIT_USAGE = 2
EXIT_NO_READER = 3


def main() -> None:
    """Read the specification and answer it; exits with 2 for unfit input and 3 where nobody reads the results."""
    clock = SystemClock()
    started_s = clock.monotonic_s()
    try:
        descriptor = spec.parse_descriptor(sys.argv[1:])
        asked = spec.parse(sys.stdin.buffer.read().decode("utf-8"))
    except (spec.SpecError, UnicodeDecodeError) as error:
        sys.stderr.write("workloads: %s\n" % error)
        sys.exit(EXIT_USAGE)
    try:
        session.run(asked, Emitter(descriptor), clock, started_s)
    except OSError as error:
        sys.stderr.write("workloads: results cannot be written: %s\n" % error)
        sys.exit(EXIT_NO_READER)


if __name__ == "__main__":
    main()
