"""A kubelet's pod-resources API on a Unix socket: a real gRPC server, its messages made by protobuf itself."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_TEXT, _MESSAGE, _INT64 = 9, 11, 3
_ONE, _MANY = 1, 3
_MESSAGES: Final[dict[str, tuple[tuple[str, int, int, int, str], ...]]] = {
    "ListPodResourcesResponse": (("pod_resources", 1, _MESSAGE, _MANY, "PodResources"),),
    "PodResources": (
        ("name", 1, _TEXT, _ONE, ""),
        ("namespace", 2, _TEXT, _ONE, ""),
        ("containers", 3, _MESSAGE, _MANY, "ContainerResources"),
    ),
    "ContainerResources": (
        ("name", 1, _TEXT, _ONE, ""),
        ("devices", 2, _MESSAGE, _MANY, "ContainerDevices"),
        ("cpu_ids", 3, _INT64, _MANY, ""),
        ("dynamic_resources", 5, _MESSAGE, _MANY, "DynamicResource"),
    ),
    "ContainerDevices": (
        ("resource_name", 1, _TEXT, _ONE, ""),
        ("device_ids", 2, _TEXT, _MANY, ""),
        ("topology", 3, _MESSAGE, _ONE, "TopologyInfo"),
    ),
    "TopologyInfo": (("nodes", 1, _MESSAGE, _MANY, "NUMANode"),),
    "NUMANode": (("ID", 1, _INT64, _ONE, ""),),
    "DynamicResource": (
        ("claim_name", 2, _TEXT, _ONE, ""),
        ("claim_namespace", 3, _TEXT, _ONE, ""),
        ("claim_resources", 4, _MESSAGE, _MANY, "ClaimResource"),
    ),
    "ClaimResource": (
        ("cdi_devices", 1, _MESSAGE, _MANY, "CDIDevice"),
        ("driver_name", 2, _TEXT, _ONE, ""),
        ("pool_name", 3, _TEXT, _ONE, ""),
        ("device_name", 4, _TEXT, _ONE, ""),
    ),
    "CDIDevice": (("name", 1, _TEXT, _ONE, ""),),
}
"""The published messages of v1, by name: field name, number, type, label, message type."""

Answer = Callable[[grpc.ServicerContext], bytes]


def _response_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="podresources.proto", package="v1", syntax="proto3")
    for name, rows in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, label, of in rows:
            message.field.add(name=field, number=number, type=kind, label=label, type_name=f".v1.{of}" if of else None)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("v1.ListPodResourcesResponse"))


def pod(
    name: str, devices: Sequence[str], *, resource: str = "nvidia.com/gpu", claims: Sequence[tuple[str, str]] = ()
) -> dict[str, Any]:
    """Return a pod of namespace ``ml`` whose container ``train`` has devices, and claims as (driver, device)."""
    resources = [{"driver_name": driver, "pool_name": "node", "device_name": device} for driver, device in claims]
    container = {
        "name": "train",
        "devices": [{"resource_name": resource, "device_ids": list(devices), "topology": {"nodes": [{"ID": 1}]}}],
        "cpu_ids": [1, 300],
        "dynamic_resources": [{"claim_name": "c", "claim_namespace": "ml", "claim_resources": resources}],
    }
    return {"name": name, "namespace": "ml", "containers": [{"name": "sidecar"}, container]}


def response(*pods: dict[str, Any]) -> bytes:
    """Return the answer to List about those pods, on the wire."""
    encoded: bytes = _response_class()(pod_resources=list(pods)).SerializeToString()
    return encoded


@contextlib.contextmanager
def running_kubelet(path: Path, answer: Answer) -> Iterator[threading.Event]:
    """Serve List on a socket at ``path``; gives an event that is set whenever somebody asked."""
    asked = threading.Event()

    def listed(request: bytes, context: grpc.ServicerContext) -> bytes:
        assert request == b""
        asked.set()
        return answer(context)

    handler = grpc.method_handlers_generic_handler(
        "v1.PodResourcesLister", {"List": grpc.unary_unary_rpc_method_handler(listed)}
    )
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    try:
        yield asked
    finally:
        server.stop(0).wait()
