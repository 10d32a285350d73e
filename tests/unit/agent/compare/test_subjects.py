"""What is compared: labels, cards, and which of their measurements."""

from agent.bench.model import Step
from agent.compare.subjects import labels, subjects
from tests.support.results import bench_result, curve, facts, machine, training


def test_equal_labels_are_numbered() -> None:
    """Every result can be told from the others, whatever they are called."""
    named = [bench_result(label=label) for label in ("a", "a", "a (2)", "", "a\nb")]
    assert labels(named) == ("a", "a (2)", "a (2) (2)", "unnamed", "a\ufffdb")
    assert labels(named, ["x", "y", "z", "x", "x"])[:3] == ("a (x)", "a (y)", "a (2)")
    assert labels(named[:2], ["x", "x"]) == ("a (x)", "a (x) (2)")


def test_each_card_of_a_result_is_a_subject() -> None:
    """Two cards of one machine are compared with each other."""
    steps = (Step("one", curve(1000.0)), Step("two", curve(900.0, card="00000009")))
    both = machine(facts(), facts("00000009", index=1))

    found = subjects([bench_result(*steps, on=both)])

    assert [one.label for one in found] == ["made up A, card 0", "made up A, card 1"]
    assert [one.facts.id for one in found if one.facts] == ["00000001", "00000009"]


def test_a_result_on_a_cpu_has_the_processor_for_a_card() -> None:
    """There is no card to name."""
    steps = Step("resnet50", curve(3.0, (2,), card="cpu"))
    (one,) = subjects([bench_result(steps, on=machine(device="cpu", cards=()))])

    assert (one.card, one.facts, len(one.best)) == ("Made-Up Processor", None, 1)


def test_a_result_without_a_training_figure_is_still_there() -> None:
    """A comparison loses no result."""
    (one,) = subjects([bench_result(Step("empty", ()))])
    assert (one.label, one.best) == ("made up A", ())


def test_failed_limited_and_spread_steps_are_not_a_cards_own() -> None:
    """Only good steps on the card alone, under the result's own memory limit, count."""
    records = (training(1.0, status="error"), training(2000.0, replicas=2), training(500.0, batch=8))
    limited = Step("limited", (training(400.0, batch=4),), memory_limit_bytes=2**33)

    (one,) = subjects([bench_result(Step("mixed", records), limited)])

    assert [at.batch for at, _ in one.best] == [8]
