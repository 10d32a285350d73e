"""Text from outside (kernel, driver, process names) made fit for labels, logs and pages."""

from typing import Final

REPLACEMENT: Final = "\ufffd"
ELLIPSIS: Final = "\u2026"


def clean_label(text: str, limit: int = 128) -> str:
    """Return ``text`` as one printable line that encodes as UTF-8, of at most ``limit`` characters (1 or more).

    What cannot be printed (control characters, line ends, lone surrogates, direction marks) becomes
    U+FFFD; what is too long ends in an ellipsis. Quotes and backslashes stay: escaping them is the
    business of each output format. Clean text comes back unchanged.
    """
    if len(text) > limit:
        text = text[: limit - 1] + ELLIPSIS
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else REPLACEMENT for char in text)
