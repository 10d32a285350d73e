"""A node that does what a scenario says, with noise as measured on real cards."""

import bisect
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from agent.config.settings import VerdictSettings
from agent.model.probe import PROBE_KINDS, Attribution, Environment, ProbeName, ProbeRecord, ProbeResult
from agent.model.process import CgroupReading, HostCpuReading, ProcessReading, ProcessReport
from agent.model.reference import Reference
from agent.model.snapshot import Card, CardIdentity, GpuProcess, NvmlHealth, Snapshot
from agent.verdicts.references import new_references
from agent.verdicts.view import Facts
from benchmarks.faultbench.scenario import Change, Nvml, Probes, Process, Scenario, Values

WALL_S = 1_764_500_000.0
HOST_CORES = 16
SWEEP_S = 5.0
"""Seconds between two sweeps over processes."""
SLOW_S = 10.0
"""Seconds between two readings of slow quantities."""
NOISE = {"utilization_ratio": 0.02, "power_watts": 0.015, "clock_sm_hertz": 0.005}
"""Standard deviations, as shares of the value."""
PROBE_NOISE: Mapping[ProbeName, float] = MappingProxyType({"matmul": 0.0047, "resnet50": 0.0035})
"""Coefficient of variation of each judged figure over twenty fresh children, as measured."""
FIGURES_APART_S = 7.0
OUTLIER = 0.94
FULL: Mapping[ProbeName, float] = MappingProxyType({"matmul": 660e12, "resnet50": 2088.0})
"""What a good card reaches."""
SHAPE: Mapping[ProbeName, str] = MappingProxyType({"matmul": "8192x8192x8192", "resnet50": "256x224x224x3"})
SUSPICION_S = (300.0, 900.0)
"""When a suspect card is probed again, twice each time."""
SLOW_KEYS = ("ecc_", "row_remap", "retired_", "recovery_", "pcie_", "nvlink_", "fabric_")
MODEL = "NVIDIA H200"


class _CardWorld:
    """One card's truth at a moment."""

    def __init__(self, index: int, scenario: Scenario, profile: Values) -> None:
        model = scenario.models[index] if scenario.models else MODEL
        self.identity = CardIdentity(
            index=index, uuid=f"GPU-{index:08d}", name=model, pci_bus_id=f"0000:{index + 1:02x}:00.0"
        )
        values = {**profile, **scenario.set, **scenario.per_gpu.get(str(index), {})}
        self.values = {key: value for key, value in values.items() if key not in scenario.unset}
        self.rates: Values = {}
        self.process = scenario.process
        self.lost = ""
        self.hung_s = 0.0
        self.silent = self.absent = self.paused = False
        self.cpu_s = self.periods = self.throttled = self.io_s = 0.0
        self.slow: Values = {}
        self.slow_due_s = 0.0


class World:
    """Plays one scenario under one seed; ``suspect`` tells it which cards to probe again soon."""

    def __init__(self, scenario: Scenario, profiles: Mapping[str, Values], seed: int, limits: VerdictSettings) -> None:
        self._scenario = scenario
        self._profiles = profiles
        self._random = random.Random(f"{scenario.name}/{seed}")
        self._limits = limits
        self._phase = self._random.uniform(0, 2 * math.pi)
        self.cards = [_CardWorld(i, scenario, profiles[scenario.profile]) for i in range(scenario.cards)]
        self._nvml = Nvml()
        self._host_used = scenario.host_used
        self._host_idle_s = 0.0
        self._sweep: ProcessReport | None = None
        self._queue = self._changes()
        self._undo: list[tuple[float, list[dict[str, object]], Nvml, float]] = []
        self._probes = self._planned()
        self._suspected: dict[str, float] = {}
        self._records: tuple[ProbeRecord, ...] = ()
        self._references: tuple[Reference, ...] = ()

    def ticks(self) -> Iterator[tuple[float, Snapshot, Facts]]:
        """Yield time, snapshot and facts of each tick."""
        tick_s = self._scenario.tick_s
        for number in range(int(self._scenario.duration_s / tick_s)):
            now_s = number * tick_s
            self._apply(now_s)
            self._probe(now_s)
            yield now_s, self._snapshot(now_s, tick_s), self._facts(now_s, tick_s)

    def after(self, seconds: float, step_s: float) -> Iterator[tuple[float, Snapshot]]:
        """Yield time and snapshot every ``step_s`` for so long after the end, all going on as it is."""
        for number in range(int(seconds / step_s)):
            now_s = self._scenario.duration_s + number * step_s
            self._apply(now_s)
            yield now_s, self._snapshot(now_s, step_s)

    def moment(self, at_s: float) -> float:
        """Return when the change written for ``at_s`` comes under this seed; ``at_s`` itself without one."""
        return self._moved.get(at_s, at_s)

    @property
    def records(self) -> tuple[ProbeRecord, ...]:
        """Return the probes that have finished."""
        return self._records

    def suspect(self, uuids: frozenset[str], now_s: float) -> None:
        """Plan the probes that a suspicion asks for, unless they are planned."""
        for uuid in uuids:
            if now_s < self._suspected.get(uuid, -1.0):
                continue
            self._suspected[uuid] = now_s + 3600.0
            current = [probes for at_s, probes in self._probes_of(uuid) if at_s <= now_s][-1:]
            for probes in current:
                for delay_s in SUSPICION_S:
                    for again_s in (0.0, 30.0):
                        entry = (now_s + delay_s + again_s, self._gpu(uuid), probes, "suspicion")
                        bisect.insort(self._probes, entry, key=lambda planned: planned[0])

    def _probes_of(self, uuid: str) -> list[tuple[float, Probes]]:
        return [(at_s, probes) for at_s, gpu, probes, _ in self._all_probes if gpu == self._gpu(uuid)]

    def _gpu(self, uuid: str) -> int:
        return next(card.identity.index for card in self.cards if card.identity.uuid == uuid)

    def _changes(self) -> list[tuple[float, Change]]:
        """Return the changes in order of time, moved by the seed unless they are exact."""
        jitter_s = 10 * self._scenario.tick_s
        self._moved = {
            change.at_s: change.at_s + (0.0 if change.exact else self._random.uniform(0, jitter_s))
            for change in self._scenario.change
        }
        return sorted(((self._moved[c.at_s], c) for c in self._scenario.change), key=lambda pair: pair[0])

    def _planned(self) -> list[tuple[float, int, Probes, str]]:
        """Return every scheduled probe as time, card, entry, trigger, in order of time."""
        planned = [
            (probes.from_s + number * probes.every_s * self._random.uniform(0.97, 1.03), gpu, probes, "schedule")
            for probes in self._scenario.probe
            for gpu in ([probes.gpu] if probes.gpu is not None else range(self._scenario.cards))
            for number in range(probes.count)
        ]
        planned.sort(key=lambda entry: entry[0])
        self._all_probes = list(planned)
        return planned

    def _apply(self, now_s: float) -> None:
        """Undo what has ended, make the changes that are due."""
        for entry in [entry for entry in self._undo if entry[0] <= now_s]:
            self._undo.remove(entry)
            for card, state in zip(self.cards, entry[1], strict=True):
                kept = {
                    key: getattr(card, key) for key in ("cpu_s", "periods", "throttled", "io_s", "slow", "slow_due_s")
                }
                card.__dict__.update(state, **kept)
            self._nvml, self._host_used = entry[2], entry[3]
        while self._queue and self._queue[0][0] <= now_s:
            _, change = self._queue.pop(0)
            if change.for_s is not None:
                states = [
                    {**card.__dict__, "values": dict(card.values), "rates": dict(card.rates)} for card in self.cards
                ]
                self._undo.append((now_s + change.for_s, states, self._nvml, self._host_used))
            self._change(change)

    def _change(self, change: Change) -> None:
        """Make one change."""
        for card in self.cards if change.gpu is None else [self.cards[change.gpu]]:
            if change.profile is not None:
                card.values.update(self._profiles[change.profile])
            card.values.update(change.set)
            for key in change.unset:
                card.values.pop(key, None)
            card.rates.update(change.rates)
            for name in ("lost", "hung_s", "silent", "absent", "paused", "process"):
                if (value := getattr(change, name)) is not None:
                    setattr(card, name, value)
            if change.no_process:
                card.process = None
        self._nvml = change.nvml or self._nvml
        self._host_used = self._host_used if change.host_used is None else change.host_used

    def _snapshot(self, now_s: float, tick_s: float) -> Snapshot:
        """Return what the agent reads now."""
        present = [card for card in self.cards if not card.absent] if self._nvml.cards else []
        return Snapshot(
            taken_monotonic_s=now_s,
            taken_wall_s=WALL_S + now_s,
            cards=tuple(self._card(card, now_s, tick_s) for card in present),
            nvml=NvmlHealth(up=self._nvml.up, error=self._nvml.error, hung_s=self._nvml.hung_s),
        )

    def _card(self, card: _CardWorld, now_s: float, tick_s: float) -> Card:
        """Return one card's readings with their noise."""
        for key, rate in card.rates.items():
            card.values[key] = card.values.get(key, 0.0) + _poisson(self._random, rate * tick_s)
        if card.lost or card.silent or card.paused or not self._nvml.up:
            return Card(card.identity, lost=card.lost, hung_s=card.hung_s)
        values = dict(card.values)
        rand = self._random.random
        for key, value in card.values.items():
            if 0.0 < value < 1.0 and key.startswith("throttle_active"):
                values[key] = float(rand() < value)
        for key, spread in NOISE.items():
            if values.get(key):
                values[key] *= self._random.gauss(1.0, spread)
        if "utilization_ratio" in values:
            values["utilization_ratio"] = min(1.0, max(0.0, values["utilization_ratio"]))
        if "temperature_celsius" in values:
            values["temperature_celsius"] = float(
                round(values["temperature_celsius"] + self._random.uniform(-0.7, 0.7))
            )
        if now_s >= card.slow_due_s:
            card.slow = {key: value for key, value in values.items() if key.startswith(SLOW_KEYS)}
            card.slow_due_s = now_s + SLOW_S
        values.update(card.slow)
        processes = () if card.process is None else (GpuProcess(card.process.pid, card.process.kind),)
        return Card(card.identity, values=values, processes=processes)

    def _facts(self, now_s: float, tick_s: float) -> Facts:
        """Return what the agent knows beside."""
        scenario = self._scenario
        self._run_processes(now_s, tick_s)
        on_bus = scenario.cards if scenario.on_bus is None else scenario.on_bus
        in_inventory = scenario.cards if scenario.in_inventory is None else scenario.in_inventory
        extra = [CardIdentity(i, f"GPU-{i:08d}", pci_bus_id=f"0000:{i + 1:02x}:00.0") for i in range(in_inventory)]
        return Facts(
            probes=self._records,
            references=self._references,
            processes=self._sweep,
            expected_gpus=scenario.expected_gpus,
            pci_bus_ids=tuple(f"0000:{i + 1:02x}:00.0" for i in range(on_bus)),
            inventory=tuple(extra),
            paused=frozenset(card.identity.uuid for card in self.cards if card.paused),
        )

    def _run_processes(self, now_s: float, tick_s: float) -> None:
        """Let the host's CPUs and the processes run for a tick; sweep when it is due."""
        self._host_idle_s += HOST_CORES * (1.0 - self._host_used) * tick_s
        for card in self.cards:
            if card.process is not None:
                card.cpu_s += max(0.0, card.process.cores * self._random.gauss(1.0, 0.05)) * tick_s
                card.periods += 10 * tick_s
                card.throttled += 10 * tick_s * card.process.throttled
                card.io_s += card.process.io * tick_s
        if self._sweep is None or now_s - self._sweep.host.taken_monotonic_s >= SWEEP_S:
            host = HostCpuReading(taken_monotonic_s=now_s, cores=HOST_CORES, idle_s=self._host_idle_s)
            self._sweep = ProcessReport(host, tuple(_reading(c, c.process, now_s) for c in self.cards if c.process))

    def _probe(self, now_s: float) -> None:
        """Finish the probes that are due, and let references be learnt of them."""
        due = [entry for entry in self._probes if entry[0] <= now_s]
        if not due:
            return
        del self._probes[: len(due)]
        self._records += tuple(record for entry in due for record in self._run(*entry))
        made = new_references(self._records, self._references, self._limits.degraded, WALL_S + now_s)
        if made:
            self._references += made

    def _run(self, at_s: float, gpu: int, probes: Probes, trigger: str) -> Iterator[ProbeRecord]:
        """Yield the judged figures of one finished run, each with its noise."""
        scenario = self._scenario
        level = (scenario.levels[gpu] if scenario.levels else 1.0) * probes.level
        level *= 1.0 + probes.slope_per_day * (at_s - probes.from_s) / 86400.0
        day = math.sin(2 * math.pi * at_s / 86400.0 + self._phase)
        level *= 1.0 - scenario.swing * day
        if self._random.random() < probes.outliers:
            level *= OUTLIER
        for number, (probe, noise) in enumerate(PROBE_NOISE.items()):
            value = level * self._random.gauss(1.0, noise)
            yield self._record(at_s + number * FIGURES_APART_S, gpu, probes, trigger, probe, value, day)

    def _record(
        self, at_s: float, gpu: int, probes: Probes, trigger: str, probe: ProbeName, level: float, day: float
    ) -> ProbeRecord:
        ok = probes.status == "ok"
        clean = ok and not probes.contended and probes.throttled == 0
        return ProbeRecord(
            wall_s=WALL_S + at_s,
            gpu=gpu,
            uuid=self.cards[gpu].identity.uuid,
            result=ProbeResult(
                probe=probe,
                status=probes.status,
                reason=probes.reason,
                dtype="bf16",
                shape=SHAPE[probe],
                method_version=1,
                value=FULL[probe] * level if ok else None,
                unit=PROBE_KINDS[probe].unit,
            ),
            environment=Environment(tensorflow="2.21.0", driver=probes.driver),
            attribution=Attribution(
                samples=30,
                sm_clock_median_hertz=1.6e9,
                temperature_max_celsius=48.0 + 6.0 * day,
                power_limit_watts=700.0,
                throttle_share={"hw_thermal": probes.throttled} if probes.throttled else {},
                contended=probes.contended,
            ),
            judged=clean,
            trigger=trigger,
        )


def _reading(card: _CardWorld, process: Process, now_s: float) -> ProcessReading:
    return ProcessReading(
        pid=process.pid + card.identity.index,
        started_s=float(process.pid),
        gpus=(card.identity.uuid,),
        taken_monotonic_s=now_s,
        cpu_s=card.cpu_s,
        allowed_cores=process.allowed,
        blocked_threads=round(process.blocked),
        cgroup=CgroupReading(
            quota_cores=process.quota,
            periods=None if process.quota is None else int(card.periods),
            throttled_periods=None if process.quota is None else int(card.throttled),
            io_pressure_s=card.io_s,
        ),
    )


def _poisson(source: random.Random, mean: float) -> float:
    """Return a count of events whose mean number is ``mean``."""
    if mean > 50:
        return max(0.0, round(source.gauss(mean, math.sqrt(mean))))
    limit, count, product = math.exp(-mean), 0, source.random()
    while product > limit:
        count += 1
        product *= source.random()
    return float(count)


def thermal_history(scenario: Scenario, seed: int) -> bytes | None:
    """Return the thermal history a scenario starts with, as the agent keeps it; None without one."""
    history = scenario.resistance
    if not history:
        return None
    source = random.Random(f"{scenario.name}/heat/{seed}")
    values: Sequence[float] = [history["kelvin_per_watt"]] * 10 + [history["latest"]] * 2
    samples = [
        (WALL_S - 86400.0 * (len(values) - i), value * source.gauss(1.0, 0.02), history["watts"])
        for i, value in enumerate(values)
    ]
    rows = [{"wall_s": wall_s, "kelvin_per_watt": value, "power_watts": watts} for wall_s, value, watts in samples]
    return msgspec.json.encode({"GPU-00000000": rows})
