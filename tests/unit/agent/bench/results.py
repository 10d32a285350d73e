"""Results as tests need them."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from agent.bench.model import SCHEMA_VERSION, BenchResult, CardFacts, Machine, Step
from agent.model.probe import Attribution, Environment, ProbeName, ProbeRecord, ProbeResult, Timing
from agent.model.vocabulary import ProbeStatus

CARD = CardFacts(0, "0123abcd", "NVIDIA H200", memory_bytes=140e9, power_limit_watts=700.0)
MACHINE = Machine("gpu", tensorflow="2.21.0", driver="580.159.04", cards=(CARD,))
SOFTWARE = Environment(python="3.12.3", tensorflow="2.21.0", cuda="12.5.1", cudnn="9")


def training(
    batch: int,
    value: float | None = 1000.0,
    *,
    network: ProbeName = "resnet50",
    dtype: str = "bf16",
    mode: str = "graph",
    size: int = 224,
    variant: str = "",
    replicas: int = 1,
    accumulate: int = 1,
    peak_bytes: int | None = None,
    watts: float | None = None,
    host_share: float | None = 0.01,
    status: ProbeStatus = "ok",
    reason: str = "",
    steps_s: Sequence[float] = (),
    losses: Sequence[float] = (),
) -> ProbeRecord:
    """Return one training measurement of the first card."""
    timing = Timing(0.2, 0.19, 0.21, 0.001, 5, 1, first_call_s=4.0, warmup_s=1.0, host_share=host_share)
    series = {"step_s": tuple(steps_s), "loss": tuple(losses)} if steps_s else {}
    result = ProbeResult(
        network, status, reason, variant=variant, dtype=dtype, shape=f"{batch}x{size}x{size}x3", mode=mode,
        value=value if status == "ok" else None, unit="images/s" if status == "ok" else "",
        timing=timing if status == "ok" else None, allocator_peak_bytes=peak_bytes,
        figures={"replicas": float(replicas), "accumulate": float(accumulate)}, series=series,
    )  # fmt: skip
    attribution = None if watts is None else Attribution(samples=20, power_mean_watts=watts)
    return ProbeRecord(0.0, 0, CARD.id, result, SOFTWARE, attribution=attribution, trigger="bench")


def measured(
    probe: ProbeName, value: float, unit: str, *, dtype: str = "bf16", shape: str = "", variant: str = "",
    figures: Mapping[str, float] = MappingProxyType({}),
) -> ProbeRecord:  # fmt: skip
    """Return one good measurement of another kind."""
    result = ProbeResult(
        probe, "ok", variant=variant, dtype=dtype, shape=shape, value=value, unit=unit, figures=figures
    )
    return ProbeRecord(0.0, 0, CARD.id, result, SOFTWARE, trigger="bench")


def bench_result(
    steps: Mapping[str, Sequence[ProbeRecord]], machine: Machine = MACHINE, *, memory_limit_bytes: int = 0
) -> BenchResult:
    """Return a complete result with these steps."""
    made = tuple(Step(name, tuple(records), memory_limit_bytes) for name, records in steps.items())
    return BenchResult(
        SCHEMA_VERSION, "0.1.0", "test", "quick", 1.7e9, machine, made, complete=True,
        memory_limit_bytes=memory_limit_bytes,
    )  # fmt: skip
