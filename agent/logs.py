"""The log on standard error: one line an event, JSON for machines and plain text on a terminal.

Events have constant names; what varies stands in keys: ``log.warning("probe_skipped", reason="busy")``.
Import this module before ``structlog``: it keeps rich, which structlog would load for coloured
tracebacks, out of a process that runs for months (5 MB).
"""

import json
import logging
import math
import sys
import threading
from collections.abc import Mapping
from typing import Final, TextIO

if "structlog" not in sys.modules and "rich" not in sys.modules:
    sys.modules["rich"] = None  # type: ignore[assignment]  # the import system's own way to say "not there"
    import structlog

    del sys.modules["rich"]

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from agent.config.settings import LogSettings
from agent.model.text import REPLACEMENT, clean_label

_TEXT_LIMIT: Final = 16_384
_LAYOUT: Final = frozenset("\n\t")  # both renderers escape these


class LineLogger:
    """Writes lines to a stream; what the stream does not take is lost, never an error of the caller."""

    def __init__(self, stream: TextIO, lock: threading.Lock, name: str) -> None:
        """Take the stream, the lock that all loggers on it share, and the logger's name."""
        self.name = name
        self._stream = stream
        self._lock = lock

    def msg(self, message: str) -> None:
        """Write one message and flush it."""
        with self._lock:
            try:
                self._stream.write(message + "\n")
                self._stream.flush()
            except (OSError, ValueError):  # a full disk, a reader that left, a closed stream
                return

    debug = info = warning = error = critical = msg


def configure(settings: LogSettings, environ: Mapping[str, str], stream: TextIO) -> None:
    """Send all events to ``stream``, also those that libraries log through ``logging``; may be called again.

    ``auto`` is plain text where ``stream`` is a terminal outside a pod, and JSON elsewhere (the journal
    is no terminal).
    """
    level = getattr(logging, settings.level.upper())
    lock = threading.Lock()
    structlog.configure(
        processors=_processors(settings, environ, stream),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *name: LineLogger(stream, lock, name[0] if name else ""),
        cache_logger_on_first_use=False,  # a reload changes the level
    )
    root = logging.getLogger()
    root.handlers = [handler for handler in root.handlers if not isinstance(handler, LibraryHandler)]
    root.addHandler(LibraryHandler())
    root.setLevel(max(level, logging.WARNING))


class LibraryHandler(logging.Handler):
    """Hands on what libraries log through ``logging``, as event ``library_message``."""

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on one record, on its own level."""
        structlog.get_logger(record.name).log(
            record.levelno, "library_message", message=record.getMessage(), exc_info=record.exc_info
        )


def _processors(settings: LogSettings, environ: Mapping[str, str], stream: TextIO) -> list[Processor]:
    terminal = stream.isatty()
    plain = terminal and "KUBERNETES_SERVICE_HOST" not in environ
    renderer: Processor
    if settings.format == "console" or (settings.format == "auto" and plain):
        renderer = structlog.dev.ConsoleRenderer(
            colors=terminal and "NO_COLOR" not in environ, exception_formatter=structlog.dev.plain_traceback
        )
    else:
        renderer = _render_json
    return [
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.add_log_level,
        _add_logger_name,
        structlog.processors.format_exc_info,
        _clean,
        renderer,
    ]


def _add_logger_name(logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if name := getattr(logger, "name", ""):
        event["logger"] = name
    return event


def _clean(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {clean_label(str(key)): _cleaned(value) for key, value in event.items()}


def _cleaned(value: object) -> object:
    """Return ``value`` as something that JSON can say and that cannot break a line."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {clean_label(str(key)): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_cleaned(item) for item in value]
    text = value if isinstance(value, str) else repr(value)
    return "".join(char if char.isprintable() or char in _LAYOUT else REPLACEMENT for char in text[:_TEXT_LIMIT])


def _render_json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    first = {key: event.pop(key) for key in ("timestamp", "level", "event") if key in event}
    return json.dumps({**first, **event})
