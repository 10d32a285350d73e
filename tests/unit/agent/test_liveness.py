"""When the agent asks to be replaced, and when it must not."""

from pathlib import Path

from agent.liveness import Liveness, is_contained
from agent.model.snapshot import NvmlHealth, Snapshot
from tests.support.clock import FakeClock


def _seen(up: bool, error: str = "") -> Snapshot:
    return Snapshot(0.0, 0.0, nvml=NvmlHealth(up=up, error=error))


def test_a_loop_that_stands_still_is_trouble() -> None:
    """After ten seconds without a tick the process should be replaced."""
    clock = FakeClock()
    liveness = Liveness(1.0, clock, contained=False)
    liveness.moved(_seen(up=True))
    clock.advance(10.0)
    assert liveness.trouble() == ""
    clock.advance(1.0)
    assert liveness.trouble() == "the loop has not moved for 11 s"


def test_a_container_that_lost_its_cards_asks_for_replacement_after_a_grace() -> None:
    """Good once, then every call failing for two minutes: only a new container gets the device files back."""
    clock = FakeClock()
    liveness = Liveness(1.0, clock, contained=True)
    liveness.moved(_seen(up=True))
    for _ in range(122):
        assert liveness.trouble() == ""
        clock.advance(1.0)
        liveness.moved(_seen(up=False, error="UNKNOWN"))
    assert "a new container gets it back" in liveness.trouble()


def test_cards_that_never_worked_or_are_paused_or_came_back_are_no_trouble() -> None:
    """A node without a driver, an operator's pause and a driver that recovered stay alive."""
    for before, during, after in (
        (_seen(up=False, error="LIBRARY_NOT_FOUND"), "LIBRARY_NOT_FOUND", None),
        (_seen(up=True), "PAUSED", None),
        (_seen(up=True), "UNKNOWN", _seen(up=True)),
    ):
        clock = FakeClock()
        liveness = Liveness(1.0, clock, contained=True)
        liveness.moved(before)
        for _ in range(200):
            clock.advance(1.0)
            liveness.moved(_seen(up=False, error=during))
        if after:
            liveness.moved(after)
        assert liveness.trouble() == ""


def test_outside_a_container_lost_access_is_no_reason_to_be_replaced() -> None:
    """Under systemd the agent keeps trying."""
    clock = FakeClock()
    liveness = Liveness(1.0, clock, contained=False)
    liveness.moved(_seen(up=True))
    for _ in range(500):
        clock.advance(1.0)
        liveness.moved(_seen(up=False, error="UNKNOWN"))
    assert liveness.trouble() == ""


def test_containers_are_known_by_their_marks(tmp_path: Path) -> None:
    """Kubernetes' variable, systemd-nspawn's, Docker's and podman's files."""
    assert not is_contained({}, tmp_path)
    assert is_contained({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path)
    assert is_contained({"container": "podman"}, tmp_path)
    (tmp_path / ".dockerenv").touch()
    assert is_contained({}, tmp_path)
