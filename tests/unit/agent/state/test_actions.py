"""What an operator may do to the state."""

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from agent.config.settings import DegradedSettings
from agent.errors import StateError
from agent.model.snapshot import CardIdentity
from agent.state.actions import ACCEPT, FORGET, IMPORT, RENEW, Actions
from agent.state.exchange import export
from agent.state.store import Store
from tests.support.clock import FakeClock
from tests.support.histories import hourly
from tests.support.records import reference

CARDS = tuple(CardIdentity(index, f"GPU-{name}", pci_bus_id=f"0000:0{index}:00.0") for index, name in enumerate("ab"))


class Bench:
    """A store with two cards, and what its actions told."""

    def __init__(self, directory: Path) -> None:
        self.store = Store.open(directory, FakeClock())
        self.store.see_cards(CARDS)
        for card in CARDS:
            self.store.add_reference(reference(uuid=card.uuid))
            for run in hourly([-0.05] * 6, uuid=card.uuid):
                self.store.add_probe(run)
        self.present: Collection[str] | None = None
        self.changes = 0
        self.actions = Actions(
            self.store,
            FakeClock(wall_s=2e9),
            DegradedSettings,
            present=lambda: self.present,
            changed=self._count,
        )

    def _count(self) -> None:
        self.changes += 1

    def ask(self, command: str, **request: object) -> object:
        """Ask as the control socket does."""
        return self.actions.handlers()[command](request)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Return a store with two cards."""
    made = Bench(tmp_path)
    yield made
    made.store.close()


@pytest.mark.parametrize("name", ["0", "GPU-a"])
def test_renewal_takes_what_the_card_does_now(bench: Bench, name: str) -> None:
    """The new reference is an operator's, of the latest runs, for the named card only."""
    assert bench.ask(RENEW, gpus=[name]) == {"references": 1, "uuids": ["GPU-a"]}
    (renewed,) = [one for one in bench.store.references() if one.origin == "renewed"]
    assert (renewed.uuid, renewed.made_wall_s, renewed.runs) == ("GPU-a", 2e9, 6)
    assert renewed.median == pytest.approx(0.95 * 660e12)
    assert bench.changes == 1


def test_renewal_of_all_cards_and_of_unknown_ones(bench: Bench) -> None:
    """No name means all; a stranger is refused with the names that are known."""
    assert bench.ask(RENEW) == {"references": 2, "uuids": ["GPU-a", "GPU-b"]}
    with pytest.raises(StateError, match=r"7: no such card; known are: 0 \(GPU-a\), 1 \(GPU-b\)"):
        bench.ask(RENEW, gpus=["7"])


def test_renewal_needs_runs(tmp_path: Path) -> None:
    """A card without clean runs has nothing to be renewed from."""
    store = Store.open(tmp_path, FakeClock())
    actions = Actions(store, FakeClock(), DegradedSettings, present=lambda: None, changed=lambda: None)
    with pytest.raises(StateError, match="5 are needed"):
        actions.renew({})
    store.close()


def test_an_imported_document_counts_and_a_faulty_one_changes_nothing(bench: Bench) -> None:
    """All or nothing."""
    before = bench.store.references()
    with pytest.raises(StateError, match="there"):
        bench.ask(IMPORT, document="{", where="there")
    assert bench.store.references() == before
    bench.ask(IMPORT, document=export([reference(uuid="GPU-a", median=5e14)]).decode())
    assert [(one.origin, one.median) for one in bench.store.references()][-1] == ("imported", 5e14)


def test_accepting_forgets_the_cards_that_are_not_here(bench: Bench) -> None:
    """What is here is what should be."""
    bench.present = {"GPU-b"}
    assert bench.ask(ACCEPT) == {"uuids": ["GPU-a"]}
    assert {one.uuid for one in bench.store.references()} == {"GPU-b"}
    assert bench.ask(ACCEPT) == {"uuids": []}


@pytest.mark.parametrize("present", [None, ()])
def test_accepting_needs_somebody_who_sees_cards(bench: Bench, present: Collection[str] | None) -> None:
    """A driver that is down must not empty the inventory."""
    bench.present = present
    with pytest.raises(StateError, match="running agent"):
        bench.ask(ACCEPT)
    assert len(bench.store.inventory()) == 2


def test_forgetting_a_replaced_card_clears_what_belonged_to_it(bench: Bench) -> None:
    """Only a card that is out of the node, and only by name."""
    bench.present = {"GPU-b"}
    with pytest.raises(StateError, match="GPU-b: still here"):
        bench.ask(FORGET, gpus=["GPU-b"])
    with pytest.raises(StateError, match="gpus is None"):
        bench.ask(FORGET)
    assert bench.ask(FORGET, gpus=["GPU-a"]) == {"uuids": ["GPU-a"]}
    assert {run.uuid for run in bench.store.probes()} == {"GPU-b"}
    assert bench.changes == 1


@pytest.mark.parametrize("command", [RENEW, IMPORT])
def test_nothing_is_promised_while_the_state_is_in_memory(tmp_path: Path, command: str) -> None:
    """An operator's word that would be lost is refused."""
    (tmp_path / "file").write_text("in the way")
    bench = Bench(tmp_path / "file" / "state")
    with pytest.raises(StateError, match="not on disk"):
        bench.ask(command, document=export([reference()]).decode())
    bench.store.close()
