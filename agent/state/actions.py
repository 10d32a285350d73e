"""What an operator may do to the state, in the running agent or, where none runs, directly on its file."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from agent.clock import Clock
from agent.config.settings import DegradedSettings
from agent.errors import StateError
from agent.model.reference import Reference
from agent.state import exchange, history
from agent.state.store import Store
from agent.verdicts.measurements import lines
from agent.verdicts.references import LEAST_FOR_RENEWAL, renewed

Request = Mapping[str, Any]
Answer = Mapping[str, Any]

RENEW: Final = "reference-renew"
IMPORT: Final = "reference-import"
ACCEPT: Final = "inventory-accept"
FORGET: Final = "inventory-forget"


class Actions:
    """Changes to the state, each by a request as the control socket carries it."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: Callable[[], DegradedSettings],
        *,
        present: Callable[[], Collection[str] | None],
        changed: Callable[[], None],
    ) -> None:
        """Take the state; ``present`` tells the cards that are here, None where nobody knows; ``changed`` is told."""
        self._store = store
        self._clock = clock
        self._limits = limits
        self._present = present
        self._changed = changed

    def handlers(self) -> dict[str, Callable[[Request], Answer]]:
        """Return each action by the name of its command."""
        return {RENEW: self.renew, IMPORT: self.take_in, ACCEPT: self.accept, FORGET: self.forget}

    def renew(self, request: Request) -> Answer:
        """Make references of what ``gpus`` (all where empty) measured lately; they count from now on.

        Raises:
            StateError: a card is not known, none has enough clean runs, or the state is not on disk.
        """
        self._need_disk()
        uuids = set(self.named(request)) or {card.identity.uuid for card in self._store.inventory()}
        runs = [one for one in self._store.probes(history.KEEP) if one.uuid in uuids]
        by_line = [line for uuid in sorted(uuids) for line in lines(one for one in runs if one.uuid == uuid).values()]
        made = [one for line in by_line if (one := renewed(line, self._limits(), self._clock.wall_s())) is not None]
        if not made:
            raise StateError(
                f"{', '.join(sorted(uuids)) or 'no card'}: not enough clean runs under the present driver and "
                f"TensorFlow; {LEAST_FOR_RENEWAL} are needed, an hour apart by default"
            )
        return self._add(made)

    def take_in(self, request: Request) -> Answer:
        """Add the references of an exported document, ``document``; they count from now on.

        Raises:
            StateError: the document has faults, or the state is not on disk.
        """
        self._need_disk()
        where, text = str(request.get("where", "import")), request.get("document", "")
        return self._add(exchange.read(str(text).encode(), where, self._clock.wall_s()))

    def accept(self, request: Request) -> Answer:  # noqa: ARG002 - every action takes a request
        """Take the cards that are here now as all that should be: forget the others.

        Raises:
            StateError: nobody knows which cards are here, or the state is not on disk.
        """
        present = self._present()
        if not present:
            raise StateError(
                f"{self._store.path}: which cards are here is known to a running agent that sees some; "
                "start it, or name the card that is gone: heatsoak inventory forget UUID"
            )
        gone = [card.identity.uuid for card in self._store.inventory() if card.identity.uuid not in present]
        return self._forget(gone)

    def forget(self, request: Request) -> Answer:
        """Forget ``gpus`` and all that belonged to them.

        Raises:
            StateError: none is named, one is not known or still here, or the state is not on disk.
        """
        uuids = self.named(request)
        if not uuids:
            raise StateError(
                f"gpus is {request.get('gpus')!r}; right would be UUIDs as `heatsoak inventory show` prints them"
            )
        here = sorted(set(uuids) & set(self._present() or ()))
        if here:
            raise StateError(f"{', '.join(here)}: still here; a card can be forgotten once it is out of the node")
        return self._forget(uuids)

    def named(self, request: Request) -> list[str]:
        """Return the UUIDs of the cards that ``gpus`` names by index or UUID; empty where it names none.

        Raises:
            StateError: a card is not known.
        """
        known = self._store.inventory()
        by_name = {str(card.identity.index): card.identity.uuid for card in known}
        uuids = [by_name.get(str(name), str(name)) for name in request.get("gpus") or ()]
        strangers = sorted(set(uuids) - {card.identity.uuid for card in known})
        if strangers:
            known_names = ", ".join(f"{card.identity.index} ({card.identity.uuid})" for card in known)
            raise StateError(f"{', '.join(strangers)}: no such card; known are: {known_names or 'none'}")
        return uuids

    def _add(self, references: Sequence[Reference]) -> Answer:
        for reference in references:
            self._store.add_reference(reference)
        self._need_disk()
        self._changed()
        return {"references": len(references), "uuids": sorted({one.uuid for one in references})}

    def _forget(self, uuids: Sequence[str]) -> Answer:
        for uuid in uuids:
            self._store.forget_card(uuid)
        self._changed()
        return {"uuids": list(uuids)}

    def _need_disk(self) -> None:
        if not self._store.health.durable:
            raise StateError(f"nothing can be kept while the state is not on disk ({self._store.health.detail})")
