"""How small a slowdown heatsoak sees, how soon, and how often it is wrong: numbers and a picture.

    python -m benchmarks.sensitivity            # all of it, some minutes on two cores
    python -m benchmarks.sensitivity --quick    # a hundredth of the card-years
    python -m benchmarks.sensitivity --cv 0.0038 0.0033 --targets FILE    # other noise

Writes benchmarks/results/sensitivity.json and docs/pictures/sensitivity.png.
"""

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import msgspec

from agent.config.settings import DegradedSettings
from benchmarks.sensitivity_model import BOTH_SLOWED, ONE_SLOWED, Noise, detect, false_alarms
from benchmarks.sensitivity_node import episodes

ROOT = Path(__file__).parents[1]
MEASURED = Noise()
VISIBLE = replace(MEASURED, swing_kelvin=4.0)
IN_NODE = replace(MEASURED, peers=7)
SETTINGS = {
    "lone card, temperature shows the swing": VISIBLE,
    "card among seven peers": IN_NODE,
    "lone card, temperature shows nothing": MEASURED,
}


def upper_limit(count: int) -> float:
    """Return the 95 % upper limit of a Poisson mean of which ``count`` were seen (Wilson and Hilferty)."""
    n = count + 1
    return n * (1.0 - 1.0 / (9.0 * n) + 1.645 / (3.0 * math.sqrt(n))) ** 3


def scaled(noise: Noise, cv: float) -> Noise:
    """Return ``noise`` with ``cv`` for the matrix product, and as much more or less of the other figure's."""
    return replace(noise, cv=(cv, noise.cv[1] * cv / noise.cv[0]))


def alarms(noise: Noise, limits: DegradedSettings, card_years: int, seed: int) -> dict[str, Any]:
    """Return false alarms in a thousand card-years, of all lines of a card together, with the 95 % upper limit."""
    level, drift = false_alarms(noise, limits, card_years, seed)
    per_thousand = 1000.0 / card_years
    return {
        "card_years": card_years,
        "level": level,
        "drift": drift,
        "per_1000_card_years": (level + drift) * per_thousand,
        "upper_95_per_1000_card_years": upper_limit(level + drift) * per_thousand,
    }


def targets(limits: DegradedSettings, cards: int, card_years: int) -> dict[str, Any]:
    """Return the figures that the targets name, in three settings."""
    table = {}
    for name, noise in SETTINGS.items():
        years = max(1, card_years // (4 if noise.peers else 1))
        table[name] = {
            "both figures slower": _figures(noise, limits, cards, BOTH_SLOWED),
            "matrix product alone slower": _figures(noise, limits, cards, ONE_SLOWED),
            "false alarms": alarms(noise, limits, years, 13),
        }
    return table


def _figures(noise: Noise, limits: DegradedSettings, cards: int, figures: tuple[float, float]) -> dict[str, float]:
    five = detect(noise, limits, 0.05, cards, 11, figures=figures)
    three = detect(noise, limits, 0.03, cards, 12, figures=figures)
    return {
        "5 % within 3 judged runs": five.within_runs(3),
        "5 % within 12 scheduled runs": five.within_hours(12),
        "3 % within 12 judged runs": three.within_runs(12),
        "3 % within 12 scheduled runs": three.within_hours(12),
    }


def curves(limits: DegradedSettings, cards: int, card_years: int) -> dict[str, Any]:
    """Return detection against noise, swing and size, and false alarms against contamination.

    The noise is that of the matrix product; the other figure's keeps its share of it.
    """
    cvs = (0.001, 0.0024, 0.0036, 0.0047, 0.006, 0.0075, 0.01)
    noisier = [scaled(VISIBLE, cv) for cv in cvs]
    swings = (0.0, 0.005, 0.01, 0.015, 0.02)
    sizes = tuple(step / 1000.0 for step in range(10, 81, 5))
    sized = [detect(VISIBLE, limits, size, cards, 14) for size in sizes]
    swinging = [replace(VISIBLE, swing=swing, swing_kelvin=400.0 * swing) for swing in swings]
    depths = (0.0, 0.01, 0.015, 0.02, 0.0225, 0.025, 0.03, 0.04)
    return {
        "noise": {"cv": cvs, **_detections(noisier, limits, cards)},
        "swing": {
            "amplitude": swings,
            **_detections(swinging, limits, cards),
        },
        "size": {
            "slowdown": sizes,
            "within_3_runs": [one.within_runs(3) for one in sized],
            "within_12_runs": [one.within_runs(12) for one in sized],
            "within_24_hours": [one.within_hours(24) for one in sized],
        },
        "contamination": {
            "depth": depths,
            **{
                name: [
                    alarms(replace(noise, contamination_depth=depth), limits, card_years, 15)["per_1000_card_years"]
                    for depth in depths
                ]
                for name, noise in SETTINGS.items()
                if not noise.peers
            },
        },
    }


def _detections(noises: Sequence[Noise], limits: DegradedSettings, cards: int) -> dict[str, list[float]]:
    return {
        "5 % within 3 judged runs": [detect(one, limits, 0.05, cards, 16).within_runs(3) for one in noises],
        "3 % within 12 judged runs": [detect(one, limits, 0.03, cards, 17).within_runs(12) for one in noises],
    }


def nodes(trials: int) -> list[dict[str, Any]]:
    """Return who is blamed in nodes whose cards are slowed for some hours, through the rules themselves."""
    rows = []
    for cards, slow, depth in ((8, 8, 0.037), (8, 8, 0.06), (8, 4, 0.06), (2, 2, 0.06), (8, 1, 0.05), (2, 1, 0.05)):
        found = episodes(cards, MEASURED.cv, depth, slow, trials, 18)
        rows.append(
            {
                "cards": cards,
                "slowed": slow,
                "by": depth,
                "episodes": trials,
                "cards blamed": sum(len(one.blamed) for one in found),
                "host blamed": sum(one.host_blamed for one in found),
            }
        )
    return rows


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw the curves."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, ((top_left, top_right), (low_left, low_right)) = plt.subplots(2, 2, figsize=(11, 7.5))
    drawn = result["curves"]
    for axes, key, unit, title in (
        (
            top_left,
            "noise",
            "cv",
            "against noise of the matrix product between fresh processes (standard deviation, %)",
        ),
        (top_right, "swing", "amplitude", "against the daily swing (amplitude, %)"),
    ):
        at = [100 * value for value in drawn[key][unit]]
        for name in ("5 % within 3 judged runs", "3 % within 12 judged runs"):
            axes.plot(at, drawn[key][name], marker="o", label=name)
        axes.axhline(0.95, color="grey", linewidth=0.8, linestyle="--")
        axes.set(xlabel=title, ylabel="share of slowed cards flagged", ylim=(0, 1.03))
        axes.legend()
    size = drawn["size"]
    for name in ("within_3_runs", "within_12_runs", "within_24_hours"):
        low_left.plot([100 * value for value in size["slowdown"]], size[name], marker="o", label=name.replace("_", " "))
    low_left.axhline(0.95, color="grey", linewidth=0.8, linestyle="--")
    low_left.set(xlabel="slowdown, %", ylabel="share of slowed cards flagged", ylim=(0, 1.03))
    low_left.legend()
    depths = [100 * value for value in drawn["contamination"]["depth"]]
    for name, values in drawn["contamination"].items():
        if name != "depth":
            low_right.plot(depths, [max(value, 0.05) for value in values], marker="o", label=name)
    low_right.axhline(1.0, color="grey", linewidth=0.8, linestyle="--")
    low_right.set(
        xlabel="depth of invisible contamination, 12 episodes of 1 to 6 h a year, %",
        ylabel="false alarms in 1,000 card-years",
        yscale="log",
    )
    low_right.legend()
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Simulate, write the numbers and the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few card-years, for a look")
    parser.add_argument(
        "--cv", type=float, nargs=2, default=MEASURED.cv, help="noise of matrix product and ResNet-50 step"
    )
    parser.add_argument("--targets", type=Path, metavar="FILE", help="only what the targets name, written to FILE")
    options = parser.parse_args()
    share = 0.01 if options.quick else 1.0
    for name, noise in SETTINGS.items():
        SETTINGS[name] = replace(noise, cv=tuple(options.cv))
    limits = DegradedSettings()
    result: dict[str, Any] = {
        "settings": msgspec.structs.asdict(limits),
        "noise": asdict(SETTINGS["lone card, temperature shows the swing"]),
        "targets": targets(limits, int(40_000 * share) + 100, int(20_000 * share)),
    }
    if options.targets:
        options.targets.write_text(json.dumps(result, indent=2) + "\n")
        return
    result |= {
        "curves": curves(limits, int(20_000 * share) + 100, int(2_000 * share)),
        "nodes": nodes(max(2, int(60 * share))),
    }
    path = ROOT / "benchmarks" / "results" / "sensitivity.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n")
    draw(result, ROOT / "docs" / "pictures" / "sensitivity.png")
    print(json.dumps({"targets": result["targets"], "nodes": result["nodes"]}, indent=2))


if __name__ == "__main__":
    main()
