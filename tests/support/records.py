"""Probe records and references as tests need them."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from agent.model.probe import Attribution, Environment, ProbeRecord, ProbeResult
from agent.model.reference import Reference
from agent.model.vocabulary import ProbeStatus

DAY_S = 86400.0
HOUR_S = 3600.0
START_S = 1_700_000_000.0
SHAPE = "8192x8192x8192"
LIMIT_WATTS = 700.0


def record(
    wall_s: float,
    value: float | None = 660e12,
    *,
    uuid: str = "GPU-a",
    gpu: int = 0,
    status: ProbeStatus = "ok",
    reason: str = "",
    judged: bool | None = None,
    trigger: str = "schedule",
    driver: str = "580.159.04",
    tensorflow: str = "2.21.0",
    method_version: int = 1,
    temperature_celsius: float | None = 45.0,
    sm_clock_hertz: float | None = 1.6e9,
    power_limit_watts: float | None = LIMIT_WATTS,
    throttle_share: Mapping[str, float] = MappingProxyType({}),
    contended: bool = False,
    shape: str = SHAPE,
) -> ProbeRecord:
    """Return a finished bf16 matrix product; judged where it went well, unless told otherwise."""
    good = status == "ok"
    return ProbeRecord(
        wall_s=wall_s,
        gpu=gpu,
        uuid=uuid,
        result=ProbeResult(
            probe="matmul",
            status=status,
            reason=reason,
            dtype="bf16",
            shape=shape,
            method_version=method_version,
            value=value if good else None,
            unit="flop/s",
        ),
        environment=Environment(tensorflow=tensorflow, driver=driver),
        attribution=Attribution(
            samples=30,
            temperature_max_celsius=temperature_celsius,
            sm_clock_median_hertz=sm_clock_hertz,
            power_limit_watts=power_limit_watts,
            throttle_share=throttle_share,
            contended=contended,
        ),
        judged=good if judged is None else judged,
        trigger=trigger,
    )


def reference(**changes: object) -> Reference:
    """Return the reference that fits ``record()``, with ``changes``."""
    plain = Reference(
        uuid="GPU-a",
        probe="matmul",
        dtype="bf16",
        shape=SHAPE,
        method_version=1,
        tensorflow="2.21.0",
        driver="580.159.04",
        power_limit_watts=LIMIT_WATTS,
        median=660e12,
        mad=1.2e12,
        unit="flop/s",
        runs=25,
        first_wall_s=START_S - 2 * DAY_S,
        last_wall_s=START_S - DAY_S,
        made_wall_s=START_S - DAY_S,
        temperature_median_celsius=45.0,
        temperature_min_celsius=40.0,
        temperature_max_celsius=50.0,
        sm_clock_median_hertz=1.6e9,
    )
    return msgspec.structs.replace(plain, **changes)
