"""``heatsoak check``: what a running agent says, one line a card, with exit codes for scripts and monitors.

Plain: 0 fine, 10 a card is degraded, faulty, lost or missing, 11 a card could not be judged. ``--nagios``
keeps the plugin conventions of Nagios and its kin, ``--npd`` those of Kubernetes' node-problem-detector.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

import click

from agent import usage
from agent.control import ControlError, ask
from agent.errors import EXIT_BAD_CARD, EXIT_OK, EXIT_UNKNOWN_CARD, HeatsoakError
from agent.invocation import Invocation
from agent.model.text import clean_label
from agent.model.verdict import Finding
from agent.model.vocabulary import CARD_STATES, CardState
from agent.verdicts.status_client import CardStatus, NoAnswerError, Status, fetch, url_at, url_of

BAD_STATES: Final[frozenset[CardState]] = frozenset({"degraded", "faulty", "lost"})
NAGIOS_OK, NAGIOS_WARNING, NAGIOS_CRITICAL, NAGIOS_UNKNOWN = 0, 1, 2, 3
NPD_OK, NPD_PROBLEM, NPD_UNKNOWN = 0, 1, 2
NPD_CHARACTERS: Final = 80
"""node-problem-detector cuts a plugin's message here by default."""
NO_CARD: Final = "no NVIDIA card here, and none expected"
_NAGIOS_WORDS: Final = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


def is_bad(status: Status) -> bool:
    """Return whether a card is degraded, faulty, lost or missing."""
    return status.node.state == "gpu_missing" or any(card.state in BAD_STATES for card in status.cards)


def is_unknown(status: Status) -> bool:
    """Return whether a card could not be judged: by its state, the node's, or because the agent stands still."""
    node_hides = status.node.state not in ("ok", "gpu_missing")
    return (
        not status.fresh
        or status.starting
        or node_hides
        or any(card.state in (None, "unknown") for card in status.cards)
    )


def exit_code(status: Status, *, allow_unknown: bool = False) -> int:
    """Return the exit code: bad before unknown; throttled alone is fine."""
    if is_bad(status):
        return EXIT_BAD_CARD
    return EXIT_UNKNOWN_CARD if is_unknown(status) and not allow_unknown else EXIT_OK


def nagios_code(status: Status) -> int:
    """Return the plugin's code: critical before unknown before warning, which throttled raises."""
    if is_bad(status):
        return NAGIOS_CRITICAL
    if is_unknown(status):
        return NAGIOS_UNKNOWN
    return NAGIOS_WARNING if any(card.state == "throttled" for card in status.cards) else NAGIOS_OK


def lines(status: Status) -> Iterator[str]:
    """Yield the node's line where there is something to say of it, then one line a card."""
    if not status.fresh:
        yield "agent: its loop stands still, what follows is old"
    if status.node.state not in ("ok", None):
        yield _line("node", status.node.state, status.node.since_wall_s, status.node.findings)
    if not status.cards and status.node.state == "ok":
        yield f"no card known yet: {clean_label(status.nvml.advice)}" if status.starting else NO_CARD
    for card in status.cards:
        yield card_line(card)


def card_line(card: CardStatus) -> str:
    """Return a card's line: who it is, its state, since when, why, what to do."""
    identity = card.identity
    name = " ".join(part for part in (f"GPU {identity.index}", identity.name, identity.pci_bus_id) if part)
    line = _line(clean_label(name), card.state or "not judged yet", card.since_wall_s, card.findings)
    starving = _first(card.findings, "input_bound")
    return f"{line}; input_bound: {_told(starving)}" if starving else line


def nagios_text(status: Status) -> str:
    """Return the plugin's output: a summary and its figures in the first line, then what is not well."""
    counts = Counter(card.state or "unknown" for card in status.cards)
    figures = [f"cards={len(status.cards)}"] + [f"{state}={counts[state]}" for state in CARD_STATES]
    figures += [
        f"gpu{card.identity.index}_temperature={card.values['temperature_celsius']:.0f}"
        for card in status.cards
        if "temperature_celsius" in card.values
    ]
    head = f"HEATSOAK {_NAGIOS_WORDS[nagios_code(status)]} - {summary(status)} | {' '.join(figures)}"
    return "\n".join([head, *(line.replace("|", "/") for line in _troubles(status))])


def npd_code(status: Status) -> int:
    """Return the plugin's code: a problem before unknown."""
    if is_bad(status):
        return NPD_PROBLEM
    return NPD_UNKNOWN if is_unknown(status) else NPD_OK


def npd_text(status: Status) -> str:
    """Return one line of at most ``NPD_CHARACTERS`` characters."""
    return summary(status)[:NPD_CHARACTERS]


def summary(status: Status) -> str:
    """Return the worst in one short line."""
    if not status.fresh:
        return "the agent's loop stands still"
    if status.node.state not in ("ok", None):
        return f"node {status.node.state}: {_cause(status.node.findings, status.node.state)}"
    if not status.cards:
        return "no card known yet" if status.starting else NO_CARD
    rank: dict[str, int] = {state: place for place, state in enumerate(CARD_STATES)}
    worst = min(status.cards, key=lambda card: rank[card.state or "unknown"])
    state = worst.state or "unknown"
    alike = [str(card.identity.index) for card in status.cards if (card.state or "unknown") == state]
    if state == "ok":
        return f"{len(status.cards)} cards ok"
    return f"GPU {','.join(alike)} {state}: {_cause(worst.findings, state)}"


def _troubles(status: Status) -> list[str]:
    """Return the lines about what is not ``ok``."""
    well = {card_line(card) for card in status.cards if card.state == "ok"}
    return [line for line in lines(status) if line not in well]


def _line(subject: str, state: str, since_wall_s: float | None, findings: Iterable[Finding]) -> str:
    finding = _first(findings, state)
    since = f" since {_utc(since_wall_s)}" if since_wall_s is not None and state != "ok" else ""
    return f"{subject}: {state}{since}" + (f": {_told(finding)}" if finding and state != "ok" else "")


def _told(finding: Finding) -> str:
    return clean_label(f"{finding.summary} Next: {finding.next_action}", 500)


def _first(findings: Iterable[Finding], state: str) -> Finding | None:
    return next((finding for finding in findings if finding.state == state and not finding.shadow), None)


def _cause(findings: Iterable[Finding], state: str) -> str:
    finding = _first(findings, state)
    return clean_label(f"{finding.rule}/{finding.cause}" if finding else "no cause given")


def _utc(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, timezone.utc).strftime("%Y-%m-%d %H:%M UTC")


def _url_of_agent(invocation: Invocation) -> str:
    """Return where the agent of the state directory says it answers; where its user alone may ask, by web.listen."""
    settings = invocation.settings()
    try:
        answer = ask(invocation.control_socket(settings), {"command": "addresses"})
    except ControlError:
        return url_of(settings)
    return url_at(answer["addresses"][0])


@click.command()
@click.option(
    "--url",
    metavar="URL",
    help="Agent to ask, http://, https:// or unix:. Default: that of the state directory, else web.listen's.",
)
@click.option("--ca-file", type=click.Path(path_type=Path, exists=True), help="Certificates to trust for https.")
@click.option("--timeout", "timeout_s", type=click.FloatRange(0.1, 300), default=5.0, help="Seconds to wait.")
@click.option("--allow-unknown", is_flag=True, help="Exit 0 where a card could not be judged.")
@click.option("--nagios", is_flag=True, help="Output and exit codes of a Nagios plugin.")
@click.option("--npd", is_flag=True, help="Output and exit codes of a node-problem-detector plugin.")
@click.pass_context
def check(
    context: click.Context,
    *,
    url: str | None,
    ca_file: Path | None,
    timeout_s: float,
    allow_unknown: bool,
    nagios: bool,
    npd: bool,
) -> int:
    """Say how the cards are: one line each, from the running agent.

    Exits with 0 if all is well, 10 if a card is degraded, faulty, lost or missing, 11 if one could not be
    judged or no agent answers, 2 on wrong usage. With --nagios or --npd whatever cannot be asked is unknown.

    \f
    Raises:
        HeatsoakError: No agent answers, or URL or configuration are wrong.
    """  # noqa: D301 - click ends its help at the form feed
    invocation: Invocation = context.obj
    if nagios:
        usage.refuse(context, ("npd", "allow_unknown"), "beside --nagios")
    if npd:
        usage.refuse(context, ("allow_unknown",), "beside --npd")
    try:
        status = fetch(url if url is not None else _url_of_agent(invocation), timeout_s, ca_file)
    except HeatsoakError as error:
        if nagios:
            click.echo(f"HEATSOAK UNKNOWN - {error}")
            return NAGIOS_UNKNOWN
        if npd:
            click.echo("no agent answers" if isinstance(error, NoAnswerError) else "wrong URL or configuration")
            return NPD_UNKNOWN
        raise
    if nagios:
        click.echo(nagios_text(status))
        return nagios_code(status)
    if npd:
        click.echo(npd_text(status))
        return npd_code(status)
    for line in lines(status):
        click.echo(line)
    return exit_code(status, allow_unknown=allow_unknown)
