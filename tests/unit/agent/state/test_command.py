"""The commands on references and inventory, with and without an agent that runs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.config.settings import DegradedSettings
from agent.control import ControlServer
from agent.errors import StateError
from agent.invocation import Invocation
from agent.model.snapshot import CardIdentity
from agent.state.actions import Actions
from agent.state.command import inventory, reference
from agent.state.store import Store
from tests.support import records
from tests.support.clock import FakeClock
from tests.support.histories import hourly

GROUPS = {"reference": reference, "inventory": inventory}


def heatsoak(directory: Path, *arguments: str) -> Result:
    """Run a command on the state in ``directory``; its errors are raised."""
    invocation = Invocation({}, 0, state_dir=str(directory))
    result = CliRunner().invoke(GROUPS[arguments[0]], arguments[1:], obj=invocation)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a directory with the state of a stopped agent."""
    store = Store.open(tmp_path, FakeClock())
    store.see_cards((CardIdentity(0, "GPU-a", name="NVIDIA H200", serial="17", pci_bus_id="0000:1b:00.0"),))
    store.add_reference(records.reference())
    for run in hourly([-0.05] * 6):
        store.add_probe(run)
    store.close()
    return tmp_path


@pytest.fixture
def running(state: Path) -> Iterator[Store]:
    """Return the state of an agent that runs and serves its control socket."""
    store = Store.open(state, FakeClock())
    actions = Actions(store, FakeClock(), DegradedSettings, present=lambda: {"GPU-b"}, changed=lambda: None)
    server = ControlServer(state / "control.sock", actions.handlers())
    server.start()
    yield store
    server.close()
    store.close()


def test_show_tells_figures_circumstances_and_which_count(state: Path) -> None:
    """One line a reference; the replaced one says so."""
    assert "660e" not in heatsoak(state, "reference", "show").output
    first = heatsoak(state, "reference", "show").output
    assert "matmul bf16 8192x8192x8192  6.6e+14 flop/s" in first
    assert first.rstrip().endswith("counts")
    heatsoak(state, "reference", "renew", "--gpu", "0")
    assert [line.split()[-1] for line in heatsoak(state, "reference", "show").output.splitlines()] == [
        "replaced",
        "counts",
    ]
    assert heatsoak(state, "reference", "show", "--gpu", "GPU-z").output.startswith("no references")
    assert len(json.loads(heatsoak(state, "reference", "show", "--json").output)["references"]) == 2


def test_export_and_import_carry_references_over(state: Path, tmp_path: Path) -> None:
    """Out to a file and in again, where they count as imported."""
    file = tmp_path / "references.json"
    heatsoak(state, "reference", "export", str(file))
    assert file.read_text() == heatsoak(state, "reference", "export").output
    assert heatsoak(state, "reference", "import", str(file)).output == "1 references imported: GPU-a\n"
    assert "imported" in heatsoak(state, "reference", "show").output


def test_files_that_cannot_be_read_or_written_are_named(state: Path) -> None:
    """The error says which file and what would be right."""
    with pytest.raises(StateError, match=r"missing\.json: cannot be read"):
        heatsoak(state, "reference", "import", str(state / "missing.json"))
    with pytest.raises(StateError, match="cannot be written"):
        heatsoak(state, "reference", "export", str(state / "no" / "such" / "folder"))


@pytest.mark.parametrize("command", [("reference", "import"), ("reference", "export")])
def test_a_files_path_stands_in_its_error_once(state: Path, command: tuple[str, ...]) -> None:
    """The system's own words carry it too."""
    for path in (state, state / "no" / "file"):
        with pytest.raises(StateError) as told:
            heatsoak(state, *command, str(path))
        assert str(told.value).startswith(f"{path}: cannot be ")
        assert str(told.value).count(str(path)) == 1


def test_a_state_that_cannot_be_used_is_named_once(tmp_path: Path) -> None:
    """As with a folder that is a file."""
    (tmp_path / "file").write_text("")
    store = Store.open(tmp_path / "file" / "state", FakeClock())
    assert store.health.detail.count(str(tmp_path)) == 1
    store.close()


def test_inventory_shows_and_forgets_without_an_agent(state: Path) -> None:
    """A card is forgotten by index or UUID; accepting needs an agent that sees."""
    assert "0  GPU-a  0000:1b:00.0  NVIDIA H200  serial 17" in heatsoak(state, "inventory", "show").output
    assert json.loads(heatsoak(state, "inventory", "show", "--json").output)[0]["identity"]["serial"] == "17"
    with pytest.raises(StateError, match="running agent"):
        heatsoak(state, "inventory", "accept")
    assert heatsoak(state, "inventory", "forget", "0").output == "forgotten: GPU-a\n"
    assert heatsoak(state, "inventory", "show").output.startswith("no cards yet")


def test_a_serial_number_that_the_driver_does_not_say_is_left_out(tmp_path: Path) -> None:
    """As with consumer cards and in masked recordings."""
    store = Store.open(tmp_path, FakeClock())
    store.see_cards((CardIdentity(0, "GPU-a", name="NVIDIA H200", pci_bus_id="0000:1b:00.0"),))
    store.close()
    assert "NVIDIA H200  seen " in heatsoak(tmp_path, "inventory", "show").output


def test_changes_go_through_the_agent_that_holds_the_state(state: Path, running: Store) -> None:
    """The running agent makes them; showing reads beside it."""
    heatsoak(state, "reference", "renew")
    assert [one.origin for one in running.references()] == ["learnt", "renewed"]
    assert "renewed" in heatsoak(state, "reference", "show").output
    assert heatsoak(state, "inventory", "accept").output == "forgotten: GPU-a\n"
    assert running.inventory() == ()


def test_a_place_without_state_is_not_made_one(tmp_path: Path) -> None:
    """A mistyped directory is refused, and nothing is left there."""
    with pytest.raises(StateError, match="no state here"):
        heatsoak(tmp_path / "nowhere", "reference", "renew")
    assert not (tmp_path / "nowhere").exists()
    assert heatsoak(tmp_path / "nowhere", "reference", "show").output.startswith("no references yet")
