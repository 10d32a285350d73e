"""``heatsoak reference`` and ``heatsoak inventory``: what the node's cards measured, and which cards they are.

Showing reads the file, also while an agent runs. Changing goes through the running agent, over its local
socket, and directly to the file where none runs.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import click
import msgspec

from agent.clock import SystemClock
from agent.control import ask
from agent.errors import StateError, reason_of
from agent.invocation import Invocation
from agent.model.reference import Reference, current_reference
from agent.model.state import ExpectedCard
from agent.state import exchange
from agent.state import inventory as stored_inventory
from agent.state import references as stored_references
from agent.state.actions import ACCEPT, FORGET, IMPORT, RENEW, Actions, Answer, Request
from agent.state.database import copy_of
from agent.state.lock import DirectoryLock
from agent.state.paths import DATABASE_NAME, LOCK_NAME
from agent.state.store import Store

_gpu = click.option(
    "--gpu", "gpus", multiple=True, help="Index or UUID of a card; may be repeated. Default: all cards."
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def reference() -> None:
    """Show, renew, export or import what a card once measured."""


@reference.command("show")
@_gpu
@_as_json
@click.pass_obj
def show_references(invocation: Invocation, gpus: tuple[str, ...], *, as_json: bool) -> None:
    """Print the references, and which of them count."""
    references, cards = _stored(invocation)
    wanted = _uuids(gpus, cards)
    chosen = [one for one in references if not wanted or one.uuid in wanted]
    if as_json:
        click.echo(exchange.export(chosen), nl=False)
        return
    for one in chosen:
        click.echo(_line(one, references, cards))
    if not chosen:
        click.echo("no references yet: a card earns one by a day of clean hourly probes")


@reference.command("renew")
@_gpu
@click.pass_obj
def renew(invocation: Invocation, gpus: tuple[str, ...]) -> None:
    """Take what the cards measured lately as what they should measure."""
    answer = _change(invocation, {"command": RENEW, "gpus": gpus})
    click.echo(f"{answer['references']} references renewed: {', '.join(answer['uuids'])}")


@reference.command("export")
@click.argument("file", type=click.Path(path_type=Path), default="-")
@click.pass_obj
def export(invocation: Invocation, file: Path) -> None:
    """Write all references as JSON to FILE, or to standard output.

    \f
    Raises:
        StateError: The state or the file cannot be read or written.
    """  # noqa: D301 - click ends its help at the form feed
    document = exchange.export(_stored(invocation)[0])
    if str(file) == "-":
        click.echo(document, nl=False)
        return
    try:
        file.write_bytes(document)
    except OSError as error:
        raise StateError(f"{file}: cannot be written ({error.strerror}); name a file that can") from error


@reference.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def take_in(invocation: Invocation, file: Path) -> None:
    """Take references from FILE, as `export` wrote them.

    Where FILE is `-` they come from standard input.

    \f
    Raises:
        StateError: The file is not what `export` wrote, or the state cannot be written.
    """  # noqa: D301 - click ends its help at the form feed
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        wanted = "right is a file that `reference export` wrote"
        raise StateError(f"{file}: cannot be read ({reason_of(error)}); {wanted}") from error
    answer = _change(invocation, {"command": IMPORT, "document": text, "where": str(file)})
    click.echo(f"{answer['references']} references imported: {', '.join(answer['uuids'])}")


@click.group()
def inventory() -> None:
    """Show, accept or forget the cards that belong to this node."""


@inventory.command("show")
@_as_json
@click.pass_obj
def show_cards(invocation: Invocation, *, as_json: bool) -> None:
    """Print the cards that belong to this node."""
    _, cards = _stored(invocation)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(cards), indent=2))
        return
    for card in cards:
        click.echo(_card_line(card))
    if not cards:
        click.echo("no cards yet: the agent takes those it sees as belonging here")


@inventory.command("accept")
@click.pass_obj
def accept(invocation: Invocation) -> None:
    """Take the cards that are here now as all that should be."""
    answer = _change(invocation, {"command": ACCEPT})
    click.echo(f"forgotten: {', '.join(answer['uuids']) or 'none, all cards are here'}")


@inventory.command("forget")
@click.argument("gpus", nargs=-1, required=True)
@click.pass_obj
def forget(invocation: Invocation, gpus: tuple[str, ...]) -> None:
    """Forget cards that left the node.

    Cards are named by index or UUID; their history and references go too.
    """
    answer = _change(invocation, {"command": FORGET, "gpus": gpus})
    click.echo(f"forgotten: {', '.join(answer['uuids'])}")


def _stored(invocation: Invocation) -> tuple[tuple[Reference, ...], tuple[ExpectedCard, ...]]:
    """Return references and cards as the file has them."""
    connection = copy_of(invocation.state_directory(invocation.settings()) / DATABASE_NAME)
    try:
        return stored_references.every(connection), stored_inventory.every(connection)
    finally:
        connection.close()


def _change(invocation: Invocation, request: Request) -> Answer:
    """Have the running agent make a change, or make it where none runs."""
    settings = invocation.settings()
    directory = invocation.state_directory(settings)
    if not (directory / DATABASE_NAME).exists():
        raise StateError(f"{directory}: no state here; start the agent first, or name another place with --state-dir")
    if _is_held(directory):
        return ask(invocation.control_socket(settings), request)
    with _opened(directory) as store:
        actions = Actions(
            store, SystemClock(), lambda: settings.verdicts.degraded, present=lambda: None, changed=lambda: None
        )
        return actions.handlers()[request["command"]](request)


def _is_held(directory: Path) -> bool:
    """Return whether an agent uses the directory."""
    try:
        DirectoryLock(directory / LOCK_NAME).release()
    except StateError:
        return True
    except OSError as error:
        raise StateError(f"{directory}: {error.strerror}; run this as the agent's user or as root") from error
    return False


@contextmanager
def _opened(directory: Path) -> Iterator[Store]:
    store = Store.open(directory, SystemClock())
    try:
        yield store
    finally:
        store.close()


def _uuids(gpus: Sequence[str], cards: Sequence[ExpectedCard]) -> set[str]:
    by_index = {str(card.identity.index): card.identity.uuid for card in cards}
    return {by_index.get(name, name) for name in gpus}


def _line(one: Reference, references: tuple[Reference, ...], cards: Sequence[ExpectedCard]) -> str:
    index = next((str(card.identity.index) for card in cards if card.identity.uuid == one.uuid), "-")
    current = current_reference(references, one.uuid, one.series, one.circumstances)
    standing = "disputed" if one.disputed else "counts" if current == one else "replaced"
    limit = "" if one.power_limit_watts is None else f"  {one.power_limit_watts:.0f} W"
    return (
        f"{index}  {one.uuid}  {one.probe} {one.dtype} {one.shape}  {one.median:.4g} {one.unit} "
        f"± {one.mad / one.median:.2%}  {one.runs} runs  {one.origin} {_date(one.made_wall_s)}  "
        f"driver {one.driver}  TensorFlow {one.tensorflow}{limit}  {standing}"
    )


def _card_line(card: ExpectedCard) -> str:
    one = card.identity
    serial = f"serial {one.serial}" if one.serial else ""
    parts = (str(one.index), one.uuid, one.pci_bus_id, one.name, serial, f"seen {_date(card.last_seen_wall_s)}")
    return "  ".join(filter(None, parts))


def _date(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%MZ")
