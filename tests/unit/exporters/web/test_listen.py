"""Listening sockets of every kind."""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.config.listen import ListenAddress
from exporters.errors import CannotListen
from exporters.web.listen import activated_listeners, close_listener, describe, open_listeners


@contextmanager
def opened(*addresses: ListenAddress) -> Iterator[list[socket.socket]]:
    """Give listeners and close them."""
    listeners = open_listeners(addresses)
    try:
        yield listeners
    finally:
        for listener in listeners:
            close_listener(listener)


def reaches(host: str, port: int) -> bool:
    """Return whether somebody listens there."""
    try:
        with socket.create_connection((host, port), 5):
            return True
    except OSError:
        return False


def port_of(listener: socket.socket) -> int:
    """Return the port the kernel chose."""
    return int(listener.getsockname()[1])


def test_an_address_without_a_host_takes_ipv4_and_ipv6() -> None:
    """One socket for both."""
    with opened(ListenAddress(port=0)) as (listener,):
        port = port_of(listener)
        assert reaches("127.0.0.1", port)
        assert reaches("::1", port)
        assert describe(listener) == f"[::]:{port}"


def test_an_ipv4_address_takes_ipv4_alone() -> None:
    """And says so with its real port."""
    with opened(ListenAddress("127.0.0.1", 0)) as (listener,):
        port = port_of(listener)
        assert port > 0
        assert reaches("127.0.0.1", port)
        assert not reaches("::1", port)
        assert describe(listener) == f"127.0.0.1:{port}"


def test_an_ipv6_address_takes_ipv6_alone() -> None:
    """A single address, not all of them."""
    with opened(ListenAddress("::1", 0)) as (listener,):
        assert reaches("::1", port_of(listener))
        assert not reaches("127.0.0.1", port_of(listener))
        assert describe(listener).startswith("[::1]:")


def test_every_ipv6_address_takes_ipv4_too_unless_that_is_listed() -> None:
    """As people expect of `[::]`, and without a clash where both are written."""
    with opened(ListenAddress("::", 0)) as (listener,):
        assert reaches("127.0.0.1", port_of(listener))
        free = port_of(listener)
    with opened(ListenAddress("0.0.0.0", free), ListenAddress("::", free)) as (first, second):
        assert (first.family, second.family) == (socket.AF_INET, socket.AF_INET6)
        assert second.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY) == 1


def test_a_name_takes_all_its_addresses() -> None:
    """A socket for each address of the name."""
    with opened(ListenAddress("localhost", 0)) as listeners:
        assert len(listeners) >= 1
        assert all(port_of(listener) for listener in listeners)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        (ListenAddress("192.0.2.7", 9838), "cannot listen on 192.0.2.7:9838: Cannot assign requested address"),
        (ListenAddress("no-such-host.invalid", 9838), "cannot listen on no-such-host.invalid:9838: "),
        (ListenAddress(path="/no/such/folder/x.sock"), "cannot listen on unix:/no/such/folder/x.sock: No such file"),
    ],
)
def test_an_address_that_cannot_be_had_is_named_in_one_line(address: ListenAddress, said: str) -> None:
    """What, where and why."""
    with pytest.raises(CannotListen) as caught:
        open_listeners([address])
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_port_that_is_taken_is_named_and_nothing_stays_open() -> None:
    """All listeners or none."""
    with opened(ListenAddress("127.0.0.1", 0)) as (holder,):
        other = socket.socket()
        with other:
            other.bind(("127.0.0.1", 0))
            free = port_of(other)
        taken = port_of(holder)
        wanted = [ListenAddress("127.0.0.1", free), ListenAddress("127.0.0.1", taken)]
        with pytest.raises(CannotListen, match=f"cannot listen on 127.0.0.1:{taken}: Address already in use"):
            open_listeners(wanted)
        assert not reaches("127.0.0.1", free)


def test_a_port_just_left_can_be_had_again() -> None:
    """A restart does not wait for old connections to be forgotten."""
    with opened(ListenAddress("127.0.0.1", 0)) as (listener,):
        port = port_of(listener)
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = listener.accept()
            accepted.close()
    with opened(ListenAddress("127.0.0.1", port)):
        assert reaches("127.0.0.1", port)


def test_a_unix_socket_is_for_owner_and_group_and_vanishes_with_its_listener(tmp_path: Path) -> None:
    """Nobody else on the machine can scrape it."""
    path = tmp_path / "heatsoak.sock"
    with opened(ListenAddress(path=str(path))) as (listener,):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        assert describe(listener) == f"unix:{path}"
    assert not path.exists()


def test_a_unix_socket_left_over_is_replaced(tmp_path: Path) -> None:
    """After kill -9 the path is there and nobody listens."""
    path = tmp_path / "heatsoak.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with opened(ListenAddress(path=str(path))), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def test_a_unix_socket_in_use_and_a_file_are_not_touched(tmp_path: Path) -> None:
    """Another agent's socket and somebody's file stay."""
    path, file = tmp_path / "heatsoak.sock", tmp_path / "file"
    file.write_text("mine")
    with opened(ListenAddress(path=str(path))):
        with pytest.raises(CannotListen, match="Address already in use"):
            open_listeners([ListenAddress(path=str(path))])
        assert path.exists()
    with pytest.raises(CannotListen, match="Address already in use"):
        open_listeners([ListenAddress(path=str(file))])
    assert file.read_text() == "mine"


def test_closing_twice_is_no_fault(tmp_path: Path) -> None:
    """Whoever stops it last finds it closed."""
    (listener,) = open_listeners([ListenAddress(path=str(tmp_path / "x.sock"))])
    close_listener(listener)
    close_listener(listener)


@pytest.mark.parametrize(
    "environ",
    [{}, {"LISTEN_FDS": "1"}, {"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_FDS": "x", "LISTEN_PID": "77"}],
)
def test_sockets_meant_for_nobody_or_another_are_not_taken(environ: dict[str, str]) -> None:
    """The variables go all the same: no child inherits them."""
    assert activated_listeners(environ, 77) == []
    assert environ == {}


def test_sockets_that_systemd_opened_are_taken(tmp_path: Path) -> None:
    """Descriptors from 3 on, in a child as systemd starts it; they listen and no child inherits them."""
    script = (
        "import os\n"
        "from exporters.web.listen import activated_listeners, describe\n"
        "environ = dict(os.environ, LISTEN_PID=str(os.getpid()))\n"
        "for listener in activated_listeners(environ, os.getpid()):\n"
        "    print(describe(listener), listener.get_inheritable(), sorted(key for key in environ if 'LISTEN' in key))\n"
    )
    addresses = [ListenAddress("127.0.0.1", 0), ListenAddress(path=str(tmp_path / "x.sock"))]
    with opened(*addresses) as listeners:
        printed = run_with_descriptors(script, [listener.fileno() for listener in listeners])
        assert printed == [f"{describe(listener)} False []" for listener in listeners]


def run_with_descriptors(script: str, descriptors: list[int]) -> list[str]:
    """Return the lines a Python child prints that has ``descriptors`` as 3, 4, and so on."""
    import subprocess
    import sys

    moves = "; ".join(f"os.dup2({number + 100}, {3 + place})" for place, number in enumerate(descriptors))
    for number in descriptors:
        os.dup2(number, number + 100)
    try:
        code = f"import os; {moves}; os.environ['LISTEN_FDS'] = '{len(descriptors)}'\n{script}"
        child = subprocess.run(
            [sys.executable, "-c", code],
            pass_fds=[number + 100 for number in descriptors],
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        for number in descriptors:
            os.close(number + 100)
    return child.stdout.splitlines()
