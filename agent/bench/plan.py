"""What a benchmark measures, as data: steps in their order, each with its requests and how long it should take."""

from collections.abc import Iterator
from itertools import product
from typing import Final, Literal

import msgspec

from agent.bench.search import doublings
from agent.model.probe import DeviceKind, ProbeName, ProbeRequest

GIB: Final = 1 << 30
SMALLER_CARD_BYTES: Final = 16 * GIB
"""The limit under which a large card plays a card of 16 GiB."""
PRECISIONS: Final = ("bf16", "fp16", "tf32", "fp32")
_NETWORKS: Final[tuple[ProbeName, ...]] = ("resnet50", "vgg16")
_MOST_BATCH: Final = {"resnet50": 8192, "vgg16": 4096}
_SEARCHED: Final = ("bf16", "tf32")
"""One precision of each width: a batch of fp16 takes the memory of bf16, one of fp32 that of tf32."""
_FEW_BATCHES: Final = {"resnet50": (16, 64, 256, 1024), "vgg16": (16, 64, 256, 512)}
_XLA_SERIES: Final = "bf16"
_XLA_BATCH: Final = 256
"""In the other precisions XLA compiles one batch only: a compilation takes half a minute."""
_SERIES: Final = 100
_DEADLINE_S: Final = 120.0
_DEADLINE_TIMES: Final = 8.0

Mode = Literal["graph", "xla"]


class PlannedStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step: its requests in one child, or a search for the largest batch of its one request."""

    name: str
    requests: tuple[ProbeRequest, ...]
    expected_s: float
    """How long it takes on an H200, on a CPU on two cores of 2020; what was done corrects it."""
    cards: int = 1
    """Over how many cards it is spread."""
    memory_limit_bytes: int = 0
    """A limit of its own; 0 for that of the whole benchmark."""
    reserve_all: bool = False
    search_to: int = 0
    """Largest batch to try, the request's own being the first; 0 for no search."""

    @property
    def deadline_s(self) -> float:
        """After how many seconds one of its children is ended."""
        return _DEADLINE_S + _DEADLINE_TIMES * self.expected_s


def plan(
    extent: Literal["quick", "full"],
    device: DeviceKind,
    cards: int = 1,
    *,
    article: bool = False,
    data_dir: str = "",
    memory_limit_bytes: int = 0,
) -> tuple[PlannedStep, ...]:
    """Return the steps, each name once.

    All but the scaling steps run on the first of ``cards``. ``article`` adds the Keras model in an eager loop
    beside our step; ``data_dir`` holds the images of the pipeline, made ones where it is empty. Under a limit for
    the whole benchmark there is no comparison of ways to take memory.
    """
    if device == "cpu":
        steps = [*_cpu(), *(_cpu_further(data_dir) if extent == "full" else ())]
        return (*steps, *(_article("fp32", 32, 2, 12.0) if article else ()))
    limited = memory_limit_bytes > 0
    chosen = _quick(data_dir, cards) if extent == "quick" else _full(data_dir, cards, limited=limited)
    return (*chosen, *(_article("tf32", 224, 32, 25.0) if article else ()))


def train(
    network: ProbeName,
    dtype: str,
    batch: int,
    mode: Mode = "graph",
    *,
    size: int = 224,
    seconds: float = 0.0,
    **options: str | float | bool,
) -> ProbeRequest:
    """Return one training measurement."""
    return ProbeRequest(network, dtype, size, batch, mode, seconds, options)


def _quick(data_dir: str, cards: int) -> Iterator[PlannedStep]:
    yield _step("cold/graph", 22.0, train("resnet50", "bf16", 256, steps=_SERIES))
    yield _step("cold/xla", 36.0, train("resnet50", "bf16", 256, "xla"))
    yield from _scaling(cards, 256)
    yield _matmul(18.0, seconds=1.0)
    yield _step("bandwidth", 18.0, ProbeRequest("bandwidth"))
    yield _step("resnet50/bf16/graph", 18.0, *(train("resnet50", "bf16", batch) for batch in (16, 64, 512)))
    yield _step("resnet50/tf32/graph", 15.0, *(train("resnet50", "tf32", batch) for batch in (32, 256)))
    yield _step("vgg16/bf16/graph", 12.0, train("vgg16", "bf16", 64))
    yield _step("cifar", 8.0, train("resnet50", "bf16", 64, size=32))
    yield from (_memory(dtype, 8.0) for dtype in ("bf16", "fp32"))
    yield _pipeline("bf16", data_dir, 40.0)


def _full(data_dir: str, cards: int, *, limited: bool) -> Iterator[PlannedStep]:
    yield _step("cold/graph", 13.0, train("resnet50", "bf16", 256))
    yield _step("cold/xla", 36.0, train("resnet50", "bf16", 256, "xla"))
    yield from _scaling(cards, 64, 256)
    yield _matmul(19.0)
    yield _step("bandwidth", 18.0, ProbeRequest("bandwidth"))
    for network, dtype in product(_NETWORKS, PRECISIONS):
        yield _curve(network, dtype)
    yield _step("cifar", 12.0, *(train("resnet50", dtype, 64, size=32) for dtype in ("bf16", "tf32")))
    yield _step("resolution", 30.0, *(train("resnet50", "bf16", 64, size=size) for size in (224, 384, 512)))
    yield from (_step(f"steps/{name}", 15.0, train(name, "bf16", 64, steps=_SERIES)) for name in _NETWORKS)
    yield _step("accumulate", 18.0, *(train("resnet50", "bf16", 64, accumulate=count) for count in (2, 8)))
    yield from (_memory(dtype, 8.0) for dtype in ("bf16", "fp16", "fp32"))
    if not limited:
        usage = ProbeRequest("memory", "bf16", 224, 64)
        yield _step("memory/growth", 12.0, usage)
        yield PlannedStep(name="memory/reserve-all", requests=(usage,), expected_s=12.0, reserve_all=True)
        smaller = msgspec.structs.replace(_search("resnet50", "bf16", 60.0), name="limit/resnet50/bf16/graph")
        yield msgspec.structs.replace(smaller, memory_limit_bytes=SMALLER_CARD_BYTES)
    yield _pipeline("bf16", data_dir, 40.0)
    for network, dtype in product(_NETWORKS, PRECISIONS):
        yield _xla(network, dtype)


def _cpu() -> Iterator[PlannedStep]:
    yield _step("cold/graph", 9.0, train("resnet50", "fp32", 2, size=32, seconds=0.3, steps=20))
    yield _step("matmul", 5.0, ProbeRequest("matmul", "fp32", 512, seconds=0.3))
    yield _step("resnet50/fp32/graph", 14.0, *(train("resnet50", "fp32", n, size=32, seconds=0.3) for n in (1, 4, 8)))
    yield _step("bandwidth", 5.0, ProbeRequest("bandwidth", seconds=0.3))


def _cpu_further(data_dir: str) -> Iterator[PlannedStep]:
    yield _step("cold/xla", 40.0, train("resnet50", "fp32", 8, "xla", size=32, seconds=0.5))
    yield _step("vgg16/fp32/graph", 15.0, *(train("vgg16", "fp32", n, size=32, seconds=0.5) for n in (1, 4)))
    yield _step("resolution", 20.0, *(train("resnet50", "fp32", 2, size=n, seconds=0.5) for n in (32, 64, 96)))
    yield _step("resnet50/bf16/graph", 20.0, train("resnet50", "bf16", 2, size=32, seconds=0.5))
    yield _step("accumulate", 12.0, train("resnet50", "fp32", 2, size=32, seconds=0.5, accumulate=4))
    yield _pipeline("fp32", data_dir, 20.0)


def _scaling(cards: int, *batches: int) -> Iterator[PlannedStep]:
    requests = tuple(train("resnet50", "bf16", batch) for batch in batches)
    for count in sorted({*doublings(1, cards), cards}) if cards > 1 else ():
        yield PlannedStep(name=f"scaling/{count}", requests=requests, expected_s=10.0 + 5.0 * len(batches), cards=count)


def _article(dtype: str, size: int, batch: int, expected_s: float) -> Iterator[PlannedStep]:
    ours = train("resnet50", dtype, batch, size=size, seconds=1.0)
    theirs = train("resnet50", dtype, batch, size=size, seconds=1.0, method="article")
    yield _step("article/ours", expected_s / 2, ours)
    yield _step("article/keras", expected_s, theirs)


def _curve(network: ProbeName, dtype: str) -> PlannedStep:
    if dtype in _SEARCHED:
        return _search(network, dtype, 150.0)
    return _step(f"{network}/{dtype}/graph", 40.0, *(train(network, dtype, batch) for batch in _FEW_BATCHES[network]))


def _search(network: ProbeName, dtype: str, expected_s: float) -> PlannedStep:
    return PlannedStep(
        name=f"{network}/{dtype}/graph", requests=(train(network, dtype, 16),), expected_s=expected_s,
        search_to=_MOST_BATCH[network],
    )  # fmt: skip


def _xla(network: ProbeName, dtype: str) -> PlannedStep:
    batches = _FEW_BATCHES[network] if dtype == _XLA_SERIES else (_XLA_BATCH,)
    requests = (train(network, dtype, batch, "xla") for batch in batches)
    return _step(f"{network}/{dtype}/xla", 8.0 + 30.0 * len(batches), *requests)


def _matmul(expected_s: float, seconds: float = 0.0) -> PlannedStep:
    requests = (ProbeRequest("matmul", dtype, seconds=seconds) for dtype in (*PRECISIONS, "fp64"))
    return _step("matmul", expected_s, *requests)


def _memory(dtype: str, expected_s: float) -> PlannedStep:
    return _step(f"memory/{dtype}", expected_s, ProbeRequest("memory", dtype, 224, 64, options={"optimizer": "adam"}))


def _pipeline(dtype: str, data_dir: str, expected_s: float) -> PlannedStep:
    options = {"data_dir": data_dir} if data_dir else {}
    return _step("pipeline", expected_s, ProbeRequest("pipeline", dtype, options=options))


def _step(name: str, expected_s: float, *requests: ProbeRequest) -> PlannedStep:
    return PlannedStep(name=name, requests=requests, expected_s=expected_s)
