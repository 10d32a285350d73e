"""The kubelet's client against a real gRPC server, and against what is none."""

import socket
import threading
import time
from pathlib import Path

import grpc
import pytest

from agent.allocation.kubelet import KubeletError, list_pod_resources
from agent.allocation.watch import AllocationWatch
from agent.clock import SystemClock
from agent.config.settings import AllocationSettings
from agent.model.snapshot import Snapshot
from tests.support.agent import eventually, running_agent
from tests.support.kubelet import pod, response, running_kubelet
from tests.support.snapshots import card, uuid_of

_CLOCK = SystemClock()


def _refuse(context: grpc.ServicerContext) -> bytes:
    context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
    raise AssertionError


def test_a_real_server_is_understood(tmp_path: Path) -> None:
    """The bytes that come back are those the server's own protobuf wrote."""
    wire = response(pod("a", [uuid_of(0)]))
    with running_kubelet(tmp_path / "k.sock", lambda _context: wire):
        assert list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 5.0) == wire


def test_an_answer_of_several_frames_is_put_together(tmp_path: Path) -> None:
    """A node with many pods: more than one HTTP/2 window."""
    wire = response(*(pod(f"pod-{number}", [f"GPU-{number:06d}"] * 20) for number in range(1000)))
    assert len(wire) > 200_000
    with running_kubelet(tmp_path / "k.sock", lambda _context: wire):
        assert list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 5.0) == wire


def test_an_empty_answer_is_an_answer(tmp_path: Path) -> None:
    """No pod holds anything."""
    with running_kubelet(tmp_path / "k.sock", lambda _context: b""):
        assert list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 5.0) == b""


def test_a_refusal_is_told_with_status_and_words(tmp_path: Path) -> None:
    """GRPC's status 14 and its message reach the log."""
    with (
        running_kubelet(tmp_path / "k.sock", _refuse),
        pytest.raises(KubeletError, match="gRPC status 14: not yet"),
    ):
        list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 5.0)


def test_a_server_that_never_answers_costs_the_deadline(tmp_path: Path) -> None:
    """The call ends on time."""
    release = threading.Event()

    def hang(_context: grpc.ServicerContext) -> bytes:
        release.wait(30.0)
        return b""

    with running_kubelet(tmp_path / "k.sock", hang):
        begun_s = time.monotonic()
        with pytest.raises(KubeletError, match=r"no answer within 0\.3 s"):
            list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 0.3)
        assert time.monotonic() - begun_s < 2.0
        release.set()


def test_a_missing_socket_is_told(tmp_path: Path) -> None:
    """The path and what it should be."""
    with pytest.raises(KubeletError, match="No such file or directory; it must be the kubelet's"):
        list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 1.0)


@pytest.mark.parametrize("said", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"", b"\0" * 64])
def test_what_speaks_no_http2_is_told(tmp_path: Path, said: bytes) -> None:
    """Another server behind that path, or one that hangs up."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "k.sock"))
        listener.listen()

        def answer() -> None:
            with listener.accept()[0] as client:
                client.recv(1000)
                client.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(KubeletError):
            list_pod_resources(str(tmp_path / "k.sock"), _CLOCK, 2.0)
        thread.join(5.0)


def test_the_watch_knows_who_holds_which_card(tmp_path: Path) -> None:
    """From the wire to allocations; garbage is counted as malformed and a dead server as the kubelet's."""
    path = str(tmp_path / "k.sock")
    watch = AllocationWatch(AllocationSettings(pod_resources=path), None, _CLOCK)
    watch.observe(Snapshot(0.0, 0.0, cards=(card(0), card(1))))
    with running_kubelet(Path(path), lambda _context: response(pod("a", [uuid_of(1)]))):
        watch.poll()
        assert watch.given_away() == frozenset({uuid_of(1)})
    with running_kubelet(Path(path), lambda _context: b"\x0a\x7f"):
        watch.poll()
    watch.poll()
    errors = dict(watch.health()[0].errors)
    assert (errors["malformed"], errors["kubelet"]) == (1, 1)


def test_a_running_agent_names_the_pod_and_leaves_its_card_alone(tmp_path: Path) -> None:
    """The series of its own carries the pod; probes of that card are skipped as allocated, of a free one not."""
    uuids = [f"GPU-00000000-0000-4000-8000-{index + 1:012d}" for index in range(8)]
    wire = response(pod("train-0", [uuids[5]]))
    with running_kubelet(tmp_path / "k.sock", lambda _context: wire):
        environ = {
            "HEATSOAK_ALLOCATION_POD_RESOURCES": str(tmp_path / "k.sock"),
            "HEATSOAK_AGENT_TICK_S": "0.2",
            "HEATSOAK_PROBE_ENABLED": "true",
            "HEATSOAK_PROBE_FIRST_DELAY_S": "2",
            "HEATSOAK_PROBE_IDLE_S": "600",
            "HEATSOAK_PROBE_TRUST_PIDS": "yes",
        }
        with running_agent(tmp_path, scenario="eight", environ=environ) as agent:
            labels = {
                "gpu": "5",
                "uuid": uuids[5],
                "namespace": "ml",
                "pod": "train-0",
                "container": "train",
                "slurm_job": "",
            }
            eventually(lambda: agent.value("heatsoak_gpu_allocation_info", **labels) == 1.0, "the pod")
            eventually(
                lambda: agent.value("heatsoak_probe_runs_total", probe="matmul", status="skipped", reason="allocated"),
                "the skipped probe",
            )
            assert agent.value("heatsoak_collector_success", collector="allocation") == 1.0
            pages = agent.metrics()
    with_pod = [name for name, rows in pages.items() for key in rows if "pod" in dict(key)]
    assert with_pod == ["heatsoak_gpu_allocation_info"]
