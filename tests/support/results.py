"""Made-up benchmark results for tests. No number here was measured: they only have the shape of results."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from agent.bench.model import SCHEMA_VERSION, BenchResult, CardFacts, Machine, Step
from agent.model.probe import Attribution, Device, Environment, ProbeRecord, ProbeResult, Timing
from agent.model.vocabulary import ProbeStatus

BATCHES = (16, 32, 64, 128)
PLAIN_SPEEDS: Mapping[str, float] = MappingProxyType({"bf16": 1000.0, "fp32": 250.0})
"""Images/s that a made-up card comes near to at large batches, by data type."""
STARTED_WALL_S = 1_790_000_000.0


def training(
    images_per_second: float,
    *,
    card: str = "00000001",
    network: str = "resnet50",
    dtype: str = "bf16",
    mode: str = "graph",
    size: int = 224,
    batch: int = 64,
    variant: str = "",
    replicas: int = 1,
    accumulate: int = 1,
    watts: float | None = 500.0,
    contended: bool = False,
    throttle_share: Mapping[str, float] = MappingProxyType({}),
    method_version: int = 1,
    status: ProbeStatus = "ok",
) -> ProbeRecord:
    """Return one training figure of a card; its peak memory grows with the batch."""
    step_s = batch * replicas * accumulate / images_per_second
    result = ProbeResult(
        probe="resnet50" if network == "resnet50" else "vgg16",
        status=status,
        reason="" if status == "ok" else "failed:made_up",
        variant=variant,
        dtype=dtype,
        shape=f"{batch}x{size}x{size}x3",
        mode=mode,
        method_version=method_version,
        value=images_per_second if status == "ok" else None,
        unit="images/s",
        timing=Timing(step_s, step_s, step_s, 0.0, 10, 1, 20 * step_s, step_s, host_share=0.01),
        allocator_peak_bytes=int(2e9 + batch * 1e8),
        figures={"replicas": float(replicas), "accumulate": float(accumulate)},
    )
    seen = Attribution(samples=20, power_mean_watts=watts, contended=contended, throttle_share=dict(throttle_share))
    return _record(result, card, seen)


def product(flops: float, *, card: str = "00000001", dtype: str = "bf16", method_version: int = 1) -> ProbeRecord:
    """Return one matrix product of 8192 cubed."""
    result = ProbeResult(
        probe="matmul", status="ok", dtype=dtype, shape="8192x8192x8192", method_version=method_version,
        value=flops, unit="flop/s",
    )  # fmt: skip
    return _record(result, card, Attribution(samples=20))


def pipeline(together: float, alone: float, *, tuned: bool = True, card: str = "00000001") -> ProbeRecord:
    """Return one input pipeline figure: fed, beside the card alone."""
    result = ProbeResult(
        probe="pipeline", status="ok", variant=f"together_{'tuned' if tuned else 'untuned'}", dtype="bf16",
        shape="64x224x224x3", method_version=1, value=together, unit="images/s",
        figures={"card_images_per_second": alone, "host_images_per_second": 2 * together},
    )  # fmt: skip
    return _record(result, card, None)


def curve(speed: float, batches: Sequence[int] = BATCHES, **circumstances: object) -> tuple[ProbeRecord, ...]:
    """Return a batch curve that comes near ``speed``."""
    return tuple(
        training(speed * batch / (batch + 16), batch=batch, **circumstances)  # type: ignore[arg-type]
        for batch in batches
    )


def facts(card: str = "00000001", name: str = "NVIDIA Made-Up 9000", **changes: object) -> CardFacts:
    """Return a card that does not exist, with ``changes``."""
    plain = CardFacts(
        index=0,
        id=card,
        name=name,
        compute_capability="9.0",
        memory_bytes=80e9,
        power_limit_watts=700.0,
        power_limit_default_watts=700.0,
        clock_sm_max_hertz=1.98e9,
        clock_memory_max_hertz=3.2e9,
        ecc_enabled=True,
        mig_enabled=False,
    )
    return msgspec.structs.replace(plain, **changes)


def machine(*cards: CardFacts, **changes: object) -> Machine:
    """Return a machine with ``cards``, of which it has one where none is given, with ``changes``."""
    plain = Machine(
        device="gpu",
        python="3.12.3",
        tensorflow="2.21.0",
        cuda="12.5.1",
        cudnn="9.3",
        driver="580.159.04",
        cpu="Made-Up Processor",
        cpus=16,
        hypervisor="kvm",
        cards=cards or (facts(),),
    )
    return msgspec.structs.replace(plain, **changes)


def bench_result(*steps: Step, label: str = "made up A", on: Machine | None = None, **changes: object) -> BenchResult:
    """Return a complete result; without steps it has a batch curve for each of :data:`PLAIN_SPEEDS`."""
    plain = BenchResult(
        schema_version=SCHEMA_VERSION,
        heatsoak="0.0",
        label=label,
        extent="full",
        started_wall_s=STARTED_WALL_S,
        machine=on or machine(),
        steps=steps or plain_steps(),
        complete=True,
    )
    return msgspec.structs.replace(plain, **changes)


def plain_steps(factor: float = 1.0, card: str = "00000001") -> tuple[Step, ...]:
    """Return a matrix product and batch curves of both networks, ``factor`` times the plain speeds."""
    steps = [Step("matmul", (product(6e14 * factor, card=card),))]
    for network, share in (("resnet50", 1.0), ("vgg16", 0.5)):
        for dtype, speed in PLAIN_SPEEDS.items():
            for mode, gain in (("graph", 1.0), ("xla", 2.5)):
                records = curve(speed * share * gain * factor, card=card, network=network, dtype=dtype, mode=mode)
                steps.append(Step(f"{network}/{dtype}/{mode}", records))
    return tuple(steps)


def _record(result: ProbeResult, card: str, attribution: Attribution | None) -> ProbeRecord:
    on_card = card != "cpu"
    return ProbeRecord(
        wall_s=STARTED_WALL_S,
        gpu=0 if on_card else None,
        uuid=card,
        result=result,
        environment=Environment(python="3.12.3", tensorflow="2.21.0", driver="580.159.04" if on_card else ""),
        device=Device(kind="gpu" if on_card else "cpu"),
        attribution=attribution,
        trigger="bench",
    )
