"""The figures in words and columns."""

from collections.abc import Iterable, Sequence

from benchmarks.faultbench.scenario import Scenario
from benchmarks.faultbench.score import RuleScore, Score, median
from benchmarks.faultbench.tuning import Choice


def print_tuning(choices: Iterable[Choice]) -> None:
    """Print what was tried for each threshold, and what was taken."""
    print("thresholds, chosen on the even seeds (recall less wrong statements a run):")
    for choice in choices:
        tried = "  ".join(f"{value:g}: {quality:.3f}" for value, quality in choice.quality.items())
        note = "as shipped" if choice.chosen == choice.shipped else f"SHIPPED {choice.shipped:g}"
        print(f"  {choice.candidate.dotted:34} {choice.chosen:<8g} {note:14} {tried}")
    print()


def print_report(total: Score, scenarios: Sequence[Scenario], seeds: int, seconds: float) -> None:
    """Print everything that was scored."""
    healthy = sum(scenario.healthy for scenario in scenarios)
    print(f"{len(scenarios)} scenarios ({healthy} healthy or benign), {seeds} seeds each, {seconds:.0f} s\n")
    print(f"{'rule':20} {'asked':>6} {'recall':>7} {'precision':>10} {'lingered':>9} {'median s':>9} {'worst s':>9}")
    for name, rule in sorted(total.rules.items()):
        print(f"{name:20} {_row(rule)}")
    print(f"\nrecall over all rules {total.recall:.4f} of {total.expected}")
    print(f"healthy runs with a false alarm: {total.healthy_alarmed} of {total.healthy_runs}")
    print(f"rules that raised: {total.rule_errors}")
    _print_counts("missed", total.missed)
    _print_counts("false alarms", total.false_alarms)
    _print_confusion(total)
    _print_baselines(total)


def _row(rule: RuleScore) -> str:
    middle = median(rule.seconds)
    return (
        f"{rule.expected:6d} {_share(rule.recall):>7} {_share(rule.precision):>10} {rule.lingered:9d} "
        f"{'-' if middle is None else f'{middle:.0f}':>9} {f'{max(rule.seconds):.0f}' if rule.seconds else '-':>9}"
    )


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print_counts(title: str, counts: dict[str, int]) -> None:
    for what, count in sorted(counts.items(), key=lambda item: -item[1])[:20]:
        print(f"  {title}: {count} x {what}")


def _print_confusion(total: Score) -> None:
    """Print true states down, said states across."""
    states = sorted({state for pair in total.confusion for state in pair})
    print("\ntrue state at the end (down), said state (across):")
    print(" " * 26 + " ".join(f"{state[:11]:>11}" for state in states))
    for true in states:
        counts = [total.confusion[true, said] for said in states]
        if any(counts):
            print(f"{true:26}" + " ".join(f"{count or '.':>11}" for count in counts))


def _print_baselines(total: Score) -> None:
    """Print how the baselines did on the same runs, any alert about the right subject counting as a find."""
    print("\nbaselines on the same runs (faults that raise an alarm; any alert about the subject is a find):")
    print(f"{'':22} {'recall':>7} {'healthy runs with a false alarm':>33}")
    serious = total.baseline_found["of"]
    for name in ("exporter rules", "z-score"):
        alarmed = total.baseline_healthy_alarmed[name]
        print(f"{name:22} {total.baseline_found[name] / max(1, serious):7.3f} {alarmed:22d} of {total.healthy_runs}")
    for family, found in sorted(total.baseline_families.items()):
        if found["of"]:
            shares = ", ".join(f"{name} {found[name] / found['of']:.2f}" for name in ("exporter rules", "z-score"))
            print(f"  {family:20} {shares}")
