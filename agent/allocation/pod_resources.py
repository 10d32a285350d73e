"""The kubelet's pod-resources answer: which container was given which devices.

The messages of the published v1 API, by field number, as far as they are read here:

    ListPodResourcesResponse  1 pod_resources*
    PodResources              1 name, 2 namespace, 3 containers*
    ContainerResources        1 name, 2 devices*, 5 dynamic_resources*
    ContainerDevices          1 resource_name, 2 device_ids*
    DynamicResource           4 claim_resources*
    ClaimResource             2 driver_name, 4 device_name
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from agent.allocation.protobuf import messages, texts
from agent.model.allocation import Allocation
from agent.model.snapshot import CardIdentity

_VENDOR: Final = "nvidia.com/"
_DRA_DRIVER: Final = "gpu.nvidia.com"
_BY_INDEX = re.compile(r"(?:nvidia|gpu-)(\d+)(?:/.*)?")
"""How device plugins of clouds and dynamic resource allocation name a card: nvidia0, nvidia0/gi1, gpu-0."""


class Holding(msgspec.Struct, frozen=True):
    """A container and the name of a device that it was given."""

    namespace: str
    pod: str
    container: str
    device: str


def holdings(answer: bytes) -> tuple[Holding, ...]:
    """Return who was given which NVIDIA device.

    Raises:
        ValueError: the answer is no message of the API.
    """
    return tuple(_holdings(answer))


def allocations(held: Sequence[Holding], cards: Sequence[CardIdentity]) -> tuple[Allocation, ...]:
    """Return the cards that were given away; devices that are none of ``cards``, as MIG slices, are left out."""
    found = [
        Allocation(card.uuid, holding.namespace, holding.pod, holding.container)
        for holding in held
        for card in cards
        if _names(holding.device, card)
    ]
    return tuple(dict.fromkeys(found))


def _holdings(answer: bytes) -> Iterator[Holding]:
    for pod in messages(answer, 1):
        name, namespace = _text(pod, 1), _text(pod, 2)
        for container in messages(pod, 3):
            for device in _devices(container):
                yield Holding(namespace, name, _text(container, 1), device)


def _devices(container: bytes) -> Iterator[str]:
    for devices in messages(container, 2):
        if _text(devices, 1).startswith(_VENDOR):
            yield from texts(devices, 2)
    for claim in messages(container, 5):
        for resource in messages(claim, 4):
            if _text(resource, 2) == _DRA_DRIVER:
                yield _text(resource, 4)


def _text(message: bytes, wanted: int) -> str:
    """Return the last text of a field, as protobuf has it where one is repeated; empty without one."""
    return next(reversed(texts(message, wanted)), "")


def _names(device: str, card: CardIdentity) -> bool:
    """Return whether a device's name means this card; a card that is shared in time has ``::`` and a number behind."""
    name = device.partition("::")[0]
    by_index = _BY_INDEX.fullmatch(name)
    return int(by_index[1]) == card.index if by_index else name == card.uuid
