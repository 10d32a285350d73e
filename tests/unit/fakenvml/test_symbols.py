"""Every function of the header is exported."""

import ctypes
import re
from importlib.metadata import files

from tests.fakenvml.build import LIBRARY, build
from tests.fakenvml.header import locate_header


def test_every_function_of_the_header_is_exported() -> None:
    """A name that the header declares is a symbol of the library."""
    text = locate_header().read_text(encoding="utf-8", errors="replace")
    declared = set(re.findall(r"DECLDIR\s+(?:char\s*\*\s*)?(nvml\w+)\s*\(", text))
    library = ctypes.CDLL(str(build() / LIBRARY))

    missing = [name for name in declared if not hasattr(library, name)]

    assert len(declared) > 400
    assert missing == []


def test_the_header_is_no_part_of_the_repository() -> None:
    """The header stays in the distribution that carries it."""
    assert locate_header() in {file.locate() for file in files("nvidia-nvml-dev") or ()}
