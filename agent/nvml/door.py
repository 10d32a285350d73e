"""The one door to NVML: every call passes here, every error gets its name here.

The binding itself is handed in, so that only the reader child imports it.
"""

from collections.abc import Callable
from typing import Any, Final

from agent.errors import HeatsoakError

NOT_SUPPORTED: Final = "NOT_SUPPORTED"
NOT_FOUND: Final = "NOT_FOUND"
FUNCTION_NOT_FOUND: Final = "FUNCTION_NOT_FOUND"
LIBRARY_NOT_FOUND: Final = "LIBRARY_NOT_FOUND"
NO_DATA: Final = "NO_DATA"
GARBLED: Final = "GARBLED"
"""An answer that the binding cannot read; the one name here that is not NVML's."""
UNSUPPORTED: Final = frozenset(
    {
        NOT_SUPPORTED,
        FUNCTION_NOT_FOUND,
        "INVALID_ARGUMENT",
        "NO_PERMISSION",
        "VGPU_ECC_NOT_SUPPORTED",
        "ARGUMENT_VERSION_MISMATCH",
        "DEPRECATED",
    }
)
"""Errors that say a reading is not to be had here: not a failure, and not worth asking each tick."""
LOST: Final = frozenset({"GPU_IS_LOST", "RESET_REQUIRED", "GPU_NOT_FOUND"})
"""Errors that say the card itself is gone."""
_PREFIX: Final = "NVML_ERROR_"


class RefusedError(HeatsoakError):
    """A driver call that gave no answer; ``name`` is NVML's name of the error, as NOT_SUPPORTED."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{what}: {name}")
        self.name = name

    @property
    def unsupported(self) -> bool:
        """Whether the reading is not to be had here."""
        return self.name in UNSUPPORTED

    @property
    def lost(self) -> bool:
        """Whether the card is gone."""
        return self.name in LOST


class Door:
    """Calls NVML by name and counts what succeeds and what fails."""

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401 - a ctypes binding without types
        self.nvml = nvml
        self.succeeded = 0
        self.failed: dict[str, int] = {}
        self.last_error = ""
        self._names = {
            getattr(nvml, name): name.removeprefix(_PREFIX) for name in dir(nvml) if name.startswith(_PREFIX)
        }
        self._functions: dict[str, Callable[..., Any]] = {}

    def reset_counts(self) -> None:
        """Count from 0 again."""
        self.succeeded = 0
        self.failed = {}
        self.last_error = ""

    def error_name(self, code: int) -> str:
        """Return NVML's name of an error code without its prefix."""
        return self._names.get(code, f"ERROR_{code}")

    def knows(self, name: str) -> bool:
        """Return whether this binding has the constant or function."""
        return hasattr(self.nvml, name)

    def constant(self, name: str) -> Any:  # noqa: ANN401 - numbers and struct versions alike
        """Return a constant of the binding.

        Raises:
            RefusedError: this binding does not know it.
        """
        try:
            return getattr(self.nvml, name)
        except AttributeError:
            raise RefusedError(FUNCTION_NOT_FOUND, name) from None

    def call(self, function: str, *args: Any, expected: str = "") -> Any:  # noqa: ANN401 - whatever the getter returns
        """Call ``nvml<function>``; the error named ``expected`` is raised too, but counts as no failure.

        Raises:
            RefusedError: NVML returned an error, or an answer that cannot be read.
        """
        try:
            found = self._functions.get(function)
            if found is None:
                found = self._functions[function] = self.constant(f"nvml{function}")
            answer = found(*args)
        except self.nvml.NVMLError as error:
            raise self._refusal(self.error_name(error.value), function, expected) from None
        except RefusedError as error:
            raise self._refusal(error.name, function) from None
        except Exception:  # noqa: BLE001 - the binding chokes on odd bytes in many ways; none may end the sweep
            raise self._refusal(GARBLED, function) from None
        self.succeeded += 1
        return answer

    def attempt(self, function: str, *args: Any) -> Any:  # noqa: ANN401 - whatever the getter returns
        """Call ``nvml<function>``; return its answer, or the RefusedError."""
        try:
            return self.call(function, *args)
        except RefusedError as error:
            return error

    def refuse(self, code: int, what: str) -> RefusedError:
        """Return the error of a return code that came inside an answer."""
        return self._refusal(self.error_name(code), what)

    def _refusal(self, name: str, what: str, expected: str = "") -> RefusedError:
        if name != expected:
            self.last_error = name
            if name not in UNSUPPORTED and name not in LOST:
                self.failed[name] = self.failed.get(name, 0) + 1
        return RefusedError(name, what)
