"""Tests of agent.verdicts.check."""

from collections.abc import Mapping

import msgspec
import pytest

from agent.model.snapshot import NvmlHealth, Snapshot
from agent.model.verdict import Finding, NodeVerdict
from agent.model.vocabulary import CARD_STATES, CardState, NodeState
from agent.verdicts import check
from agent.verdicts.status_client import Status
from exporters.status import encode_status, status_of
from tests.support.snapshots import TAKEN_WALL_S, card, h200_values, mixed_node, snapshot, verdict


def status_from(taken: Snapshot, *, fresh: bool = True) -> Status:
    """Return what a client reads of a snapshot, through the real JSON."""
    return msgspec.json.decode(encode_status(status_of(taken, version="1", fresh=fresh)), type=Status)


def node_with(*states: CardState, node: NodeState = "ok", fresh: bool = True) -> Status:
    """Return the status of a node whose cards are in these states."""
    findings = () if node == "ok" else (finding(node, node),)
    return status_from(
        snapshot(
            tuple(card(n) for n in range(len(states))),
            tuple(
                verdict(n, state, "none", *(() if state == "ok" else (finding("rule", state),)))
                for n, state in enumerate(states)
            ),
            node=NodeVerdict(node, TAKEN_WALL_S - 60, findings),
        ),
        fresh=fresh,
    )


def finding(rule: str, state: str, *, shadow: bool = False) -> Finding:
    """Return a finding."""
    return Finding(rule, state, "cause", "It is so.", "Do this.", TAKEN_WALL_S - 60, shadow=shadow)


CODES: Mapping[CardState, tuple[int, int, int]] = {
    "ok": (0, 0, 0),
    "maintenance": (0, 0, 0),
    "throttled": (0, 1, 0),
    "unknown": (11, 3, 2),
    "degraded": (10, 2, 1),
    "faulty": (10, 2, 1),
    "lost": (10, 2, 1),
}
NODE_CODES: Mapping[NodeState, tuple[int, int, int]] = {
    "ok": (0, 0, 0),
    "gpu_missing": (10, 2, 1),
    "nvml_down": (11, 3, 2),
    "driver_hung": (11, 3, 2),
    "fabric_down": (11, 3, 2),
    "probe_environment_broken": (11, 3, 2),
}


@pytest.mark.parametrize("state", CARD_STATES)
def test_each_card_state_has_its_exit_codes(state: CardState) -> None:
    """Plain, Nagios, node-problem-detector; one bad card among good ones decides."""
    status = node_with("ok", state, "ok")

    assert (check.exit_code(status), check.nagios_code(status), check.npd_code(status)) == CODES[state]


@pytest.mark.parametrize("state", NODE_CODES)
def test_each_node_state_has_its_exit_codes(state: NodeState) -> None:
    """A missing card is as bad as a lost one; what hides the cards leaves them unknown."""
    status = node_with("ok", node=state)

    assert (check.exit_code(status), check.nagios_code(status), check.npd_code(status)) == NODE_CODES[state]


def test_bad_comes_before_unknown_and_unknown_before_throttled() -> None:
    """The worst decides."""
    assert check.exit_code(node_with("unknown", "faulty")) == 10
    assert check.nagios_code(node_with("unknown", "throttled")) == 3
    assert check.npd_code(node_with("unknown", "lost")) == 1


def test_unknown_can_be_allowed_and_bad_cannot() -> None:
    """For nodes whose cards are never idle."""
    assert check.exit_code(node_with("unknown"), allow_unknown=True) == 0
    assert check.exit_code(node_with("unknown", "lost"), allow_unknown=True) == 10


def test_an_agent_that_stands_still_knows_nothing() -> None:
    """Old good news is no news."""
    status = node_with("ok", fresh=False)

    assert (check.exit_code(status), check.nagios_code(status), check.npd_code(status)) == (11, 3, 2)
    assert "stands still" in next(check.lines(status))
    assert "stands still" in check.npd_text(status)


def test_a_card_that_was_not_judged_yet_is_unknown() -> None:
    """The first tick after a start."""
    status = status_from(snapshot((card(0),)))

    assert check.exit_code(status) == 11
    assert list(check.lines(status)) == ["GPU 0 NVIDIA H200 0000:1b:00.0: not judged yet"]


def test_a_node_without_cards_says_so() -> None:
    """And is fine."""
    status = node_with()

    assert list(check.lines(status)) == ["no NVIDIA card here, and none expected"]
    assert (check.exit_code(status), check.summary(status)) == (0, "no NVIDIA card here, and none expected")


def test_each_card_has_a_line_with_reason_since_when_and_next_action() -> None:
    """A healthy card needs three words; a starving one is told apart from a sick one."""
    lines = list(check.lines(status_from(mixed_node())))

    assert len(lines) == 8
    assert lines[0] == "GPU 0 NVIDIA H200 0000:1b:00.0: ok"
    assert lines[4].startswith("GPU 4 NVIDIA H200 0000:5b:00.0: ok; input_bound: The card waits")
    assert ": degraded since 2025-11-30 08:48 UTC: 8.4 % below" in lines[5]
    assert "Next: Drain the card" in lines[5]
    assert ": lost since" in lines[6]


def test_the_node_speaks_first() -> None:
    """What hides all cards stands before them."""
    lines = list(check.lines(node_with("unknown", node="nvml_down")))

    assert lines[0].startswith("node: nvml_down since ")
    assert lines[0].endswith("It is so. Next: Do this.")


def test_a_shadow_explains_no_state() -> None:
    """It is not why the card is in its state."""
    status = status_from(
        snapshot(
            (card(0),),
            (verdict(0, "faulty", "none", finding("shadowed", "faulty", shadow=True), finding("real", "faulty")),),
        )
    )

    assert check.summary(status) == "GPU 0 faulty: real/cause"


def test_nagios_gets_a_summary_figures_and_details() -> None:
    """The figures stand behind the bar in the first line, and no other line holds a bar."""
    status = status_from(mixed_node())
    first, *rest = check.nagios_text(status).splitlines()
    summary, bar, figures = first.partition(" | ")

    assert summary == "HEATSOAK CRITICAL - GPU 6 lost: gpu_lost/fallen_off_the_bus"
    assert bar
    values = dict(figure.split("=") for figure in figures.split())
    assert (values["cards"], values["ok"], values["degraded"], values["lost"]) == ("8", "5", "1", "1")
    assert values["gpu2_temperature"] == "88"
    assert "gpu6_temperature" not in values
    assert len(rest) == 3
    assert not any("|" in line for line in rest)


def test_nagios_figures_name_every_state() -> None:
    """A state at 0 is a figure too, so that graphs have no holes."""
    figures = check.nagios_text(node_with("ok")).partition("| ")[2]

    assert {figure.partition("=")[0] for figure in figures.split()} >= set(CARD_STATES)


@pytest.mark.parametrize("cards", [1, 8, 64])
def test_npd_gets_one_short_line(cards: int) -> None:
    """At most 80 characters, whatever is wrong with how many cards."""
    states: list[CardState] = ["degraded"] * cards
    text = check.npd_text(node_with(*states))

    assert len(text) <= 80
    assert "\n" not in text
    assert text.startswith("GPU 0")


def test_hostile_text_stays_on_its_line() -> None:
    """A driver's or process's words never make a second line."""
    bad = Finding("r", "faulty", "c\n", "a\nb\x1b[31m", "c\r\n", TAKEN_WALL_S)
    status = status_from(snapshot((card(0, h200_values(), name="H\n200"),), (verdict(0, "faulty", "none", bad),)))

    assert all(line.isprintable() for line in check.lines(status))
    assert check.summary(status).isprintable()


def test_a_driver_that_is_being_initialised_is_unknown() -> None:
    """The first seconds after a start are not a node without cards."""
    status = status_from(snapshot(nvml=NvmlHealth(error="STARTING", advice="the driver is being initialised")))

    assert (check.exit_code(status), check.nagios_code(status), check.npd_code(status)) == (11, 3, 2)
    assert list(check.lines(status)) == ["no card known yet: the driver is being initialised"]
    assert check.summary(status) == "no card known yet"
