"""What survives a restart, and what a bad disk or file does to it: nothing that stops the agent."""

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agent.errors import StateError
from agent.model.snapshot import CardIdentity
from agent.state import database, history
from agent.state.paths import DATABASE_NAME
from agent.state.schema import APPLICATION_ID, VERSION
from agent.state.store import RETRY_S, Store
from tests.support.clock import FakeClock
from tests.support.records import HOUR_S, START_S, record, reference

CARD = CardIdentity(0, "GPU-a", name="NVIDIA H200", serial="1", pci_bus_id="0000:1b:00.0")


def filled(directory: Path, clock: FakeClock) -> Path:
    """Write one of each thing into the state and close it; return the file."""
    store = Store.open(directory, clock)
    store.add_reference(reference())
    for hour in range(80):
        store.add_probe(record(START_S + hour * HOUR_S))
    store.see_cards((CARD,))
    store.save_document("verdicts", b"[]")
    store.close()
    return directory / DATABASE_NAME


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    """What was written comes back as it was."""
    clock = FakeClock()
    filled(tmp_path, clock)
    store = Store.open(tmp_path, clock)
    assert store.references() == (reference(),)
    assert store.probes()[-1] == record(START_S + 79 * HOUR_S)
    assert store.load_document("verdicts") == b"[]"
    assert [card.identity for card in store.inventory()] == [CARD]
    assert store.health.durable
    store.close()


def test_a_document_is_replaced_and_a_missing_one_is_none(tmp_path: Path) -> None:
    """The last write counts."""
    store = Store.open(tmp_path, FakeClock())
    assert store.load_document("states") is None
    store.save_document("states", b"1")
    store.save_document("states", b"2")
    assert store.load_document("states") == b"2"
    store.close()


def test_second_agent_on_the_same_directory_is_refused_by_process_id(tmp_path: Path) -> None:
    """The error names the process that holds the directory; once that one is gone it may be used."""
    clock = FakeClock()
    first = Store.open(tmp_path, clock)
    with pytest.raises(StateError, match=rf"process {os.getpid()}\b"):
        Store.open(tmp_path, clock)
    first.close()
    Store.open(tmp_path, clock).close()


@pytest.mark.parametrize(
    "content", [b"", b"SQLite", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096]
)
def test_a_file_that_is_no_database_is_replaced(tmp_path: Path, content: bytes) -> None:
    """An empty file becomes a new one; anything else is kept under another name."""
    path = tmp_path / DATABASE_NAME
    path.write_bytes(content)
    with capture_logs() as logs:
        store = Store.open(tmp_path, FakeClock())
    store.add_reference(reference())
    assert store.health.durable
    assert store.references() == (reference(),)
    assert [entry["log_level"] for entry in logs] == ["warning"]
    if content:
        assert Path(store.health.set_aside).read_bytes() == content
        assert store.health.errors["damaged"] == 1
    store.close()


def test_a_foreign_database_is_set_aside_untouched(tmp_path: Path) -> None:
    """Another program's tables are not ours to change."""
    path = tmp_path / DATABASE_NAME
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    before = path.read_bytes()
    store = Store.open(tmp_path, FakeClock())
    assert Path(store.health.set_aside).read_bytes() == before
    assert store.health.durable
    store.close()


@pytest.mark.parametrize("keep", [0.02, 0.3, 0.6, 0.95])
def test_a_truncated_file_is_set_aside_and_what_can_be_read_is_kept(tmp_path: Path, keep: float) -> None:
    """The state starts whatever part is missing; the reference, written first, outlives a lost tail."""
    clock = FakeClock()
    path = filled(tmp_path, clock)
    size = path.stat().st_size
    os.truncate(path, int(size * keep))
    store = Store.open(tmp_path, clock)
    assert store.health.durable
    assert Path(store.health.set_aside).stat().st_size == int(size * keep)
    if keep >= 0.3:
        assert store.references() == (reference(),)
    store.add_probe(record(START_S))
    store.close()


def test_every_kind_of_garbled_page_lets_the_agent_start(tmp_path: Path) -> None:
    """A page of noise anywhere in the file costs rows, never the start."""
    clock = FakeClock()
    path = filled(tmp_path, clock)
    whole = path.read_bytes()
    for page in range(0, len(whole) // 4096, max(1, len(whole) // 4096 // 12)):
        path.write_bytes(whole[: page * 4096] + bytes(range(256)) * 16 + whole[(page + 1) * 4096 :])
        store = Store.open(tmp_path, clock)
        store.add_probe(record(START_S + 1e6))
        assert store.health.durable
        store.close()
        for leftover in tmp_path.glob("*-wal"):
            leftover.unlink()


def test_a_newer_versions_file_is_left_as_it_is(tmp_path: Path) -> None:
    """An older heatsoak works in memory, says why, and the newer one finds its file unchanged."""
    clock = FakeClock()
    path = filled(tmp_path, clock)
    with sqlite3.connect(path) as newer:
        newer.execute(f"PRAGMA user_version = {VERSION + 1}")
    newer.close()
    before = path.read_bytes()
    store = Store.open(tmp_path, clock)
    assert store.health.trouble == "newer_version"
    assert str(VERSION + 1) in store.health.detail
    store.add_reference(reference())
    clock.advance(RETRY_S)
    store.tend()
    assert store.references() == (reference(),)
    store.close()
    assert path.read_bytes() == before


def test_a_directory_that_cannot_be_made_leaves_the_state_in_memory(tmp_path: Path) -> None:
    """All works, nothing lasts, and the health says why."""
    (tmp_path / "file").write_text("in the way")
    clock = FakeClock()
    with capture_logs() as logs:
        store = Store.open(tmp_path / "file" / "state", clock)
        clock.advance(RETRY_S)
        store.tend()
    store.add_reference(reference())
    assert store.references() == (reference(),)
    assert not store.health.durable
    assert store.health.trouble == "unusable"
    assert store.health.errors["unusable"] == 2
    assert [entry["event"] for entry in logs] == ["state_in_memory"]
    store.close()


def test_what_was_gathered_in_memory_is_written_once_the_place_exists(tmp_path: Path) -> None:
    """The state resumes by itself."""
    (tmp_path / "file").write_text("in the way")
    clock = FakeClock()
    store = Store.open(tmp_path / "file" / "state", clock)
    store.add_reference(reference())
    store.save_document("verdicts", b"[]")
    (tmp_path / "file").unlink()
    store.tend()
    troubles = [store.health.trouble]
    clock.advance(RETRY_S)
    store.tend()
    troubles.append(store.health.trouble)
    assert troubles == ["unusable", None]
    store.close()
    again = Store.open(tmp_path / "file" / "state", clock)
    assert again.references() == (reference(),)
    assert again.load_document("verdicts") == b"[]"
    again.close()


class FullDisk:
    """Opens connections whose database cannot grow beyond what it is once ``full`` is set."""

    def __init__(self) -> None:
        self.connections: list[sqlite3.Connection] = []
        self.full = False

    def __call__(self, path: str) -> sqlite3.Connection:
        connection = database.connect(path)
        self.connections.append(connection)
        if self.full:
            connection.execute("PRAGMA max_page_count = 1")
        return connection

    def fill(self) -> None:
        """Let no open database grow any more."""
        self.full = True
        self.connections[-1].execute("PRAGMA max_page_count = 1")


def test_a_disk_that_fills_up_loses_nothing_and_is_written_again_when_it_has_room(tmp_path: Path) -> None:
    """ENOSPC: old state intact, all of it at hand meanwhile, both merged afterwards."""
    clock = FakeClock()
    filled(tmp_path, clock)
    disk = FullDisk()
    store = Store.open(tmp_path, clock, disk)
    disk.fill()
    for hour in range(80, 100):
        store.add_probe(record(START_S + hour * HOUR_S))
    assert store.health.trouble == "disk_full"
    assert store.references() == (reference(),)
    assert store.probes()[-1].wall_s == START_S + 99 * HOUR_S
    clock.advance(RETRY_S)
    store.tend()
    assert store.health.trouble == "disk_full"
    with sqlite3.connect(tmp_path / DATABASE_NAME) as other:
        assert other.execute("SELECT count(*) FROM reference").fetchone() == (1,)
        assert other.execute("PRAGMA quick_check").fetchone() == ("ok",)
    other.close()
    disk.full = False
    clock.advance(RETRY_S)
    store.tend()
    assert store.health.durable
    store.close()
    again = Store.open(tmp_path, clock)
    assert [kept.wall_s for kept in again.probes(history.KEEP)] == [START_S + hour * HOUR_S for hour in range(100)]
    again.close()


def test_a_reference_learnt_in_memory_never_replaces_the_one_on_disk(tmp_path: Path) -> None:
    """A disk that was away for a day does not launder a slow card."""
    clock = FakeClock()
    store = Store.open(tmp_path / "real", clock)
    store.add_reference(reference())
    store.close()
    (tmp_path / "file").write_text("in the way")
    away = Store.open(tmp_path / "file" / "state", clock)
    slow = reference(median=600e12, made_wall_s=START_S + 5 * HOUR_S)
    away.add_reference(slow)
    (tmp_path / "file").unlink()
    (tmp_path / "real").rename(tmp_path / "file")
    (tmp_path / "file" / "state").mkdir()
    for name in (DATABASE_NAME,):
        (tmp_path / "file" / name).rename(tmp_path / "file" / "state" / name)
    clock.advance(RETRY_S)
    away.tend()
    assert away.health.durable
    assert away.references() == (reference(), slow)
    away.close()


_IN_CHILD = """
import os, resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from tests.support.clock import FakeClock
from tests.support.records import record, reference
from agent.state.store import Store, RETRY_S
"""


def child(code: str, *arguments: str) -> "subprocess.Popen[str]":
    """Start Python with the repository on its path."""
    root = str(Path(__file__).parents[4])
    return subprocess.Popen(
        [sys.executable, "-c", _IN_CHILD.format(root=root) + code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd="/",
    )


def test_a_write_beyond_the_kernels_limit_leaves_the_old_state(tmp_path: Path) -> None:
    """With the real system call failing (a file size limit), the agent goes on and the file stays whole."""
    clock = FakeClock()
    filled(tmp_path, clock)
    size = (tmp_path / DATABASE_NAME).stat().st_size
    limited = child(
        """
store = Store.open(Path(sys.argv[1]), FakeClock())
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for hour in range(3000):
    store.add_probe(record(2e9 + hour, shape=str(hour)))
    if not store.health.durable:
        break
print(store.health.trouble, len(store.references()), store.probes()[-1].wall_s == 2e9 + hour)
""",
        str(tmp_path),
        str(size + 8192),
    )
    output, _ = limited.communicate(timeout=60)
    assert limited.returncode == 0
    trouble, references, newest = output.splitlines()[-1].split()
    assert trouble in ("disk_full", "io_error")
    assert (references, newest) == ("1", "True")
    store = Store.open(tmp_path, clock)
    assert store.health.durable
    assert store.health.set_aside == ""
    assert store.references() == (reference(),)
    store.close()


def test_a_directory_without_permission_is_named() -> None:
    """A user who may not write gets memory and the word for it, and still reads what may be read."""
    with tempfile.TemporaryDirectory() as folder:
        path = filled(Path(folder), FakeClock())
        path.chmod(0o444)
        path.parent.chmod(0o555)
        reader = child(
            """
if os.getuid() == 0:
    os.setuid(65534)
store = Store.open(Path(sys.argv[1]), FakeClock())
print(store.health.durable, store.health.trouble, len(store.references()))
""",
            folder,
        )
        output, _ = reader.communicate(timeout=60)
        path.parent.chmod(0o755)
    assert output.splitlines()[-1].split() == ["False", "permission_denied", "1"]


_WRITER = """
store = Store.open(Path(sys.argv[1]), FakeClock())
print("open", store.health.set_aside, flush=True)
number = int(sys.argv[2])
while True:
    number += 1
    store.add_probe(record(1e9 + number))
    store.add_reference(reference(made_wall_s=float(number)))
    print(number, flush=True)
"""


def kill_at_random(directory: Path, times: int, seed: int) -> None:
    """Kill a writer again and again; each start must find every reference that was reported as written."""
    delays = [((seed + turn) * 7919 % 97) / 97 * 0.1 for turn in range(times)]
    last = 0
    for delay_s in delays:
        writer = child(_WRITER, str(directory), str(last))
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open \n"
        lines = [writer.stdout.readline()]
        with pytest.raises(subprocess.TimeoutExpired):
            writer.wait(timeout=delay_s)
        writer.kill()
        lines += writer.stdout.readlines()
        writer.wait()
        writer.stdout.close()
        whole = [int(line) for line in lines if line.endswith("\n")]
        store = Store.open(directory, FakeClock())
        found = {int(kept.made_wall_s) for kept in store.references()}
        last = max(found)
        assert store.health.durable
        assert store.health.set_aside == ""
        assert set(range(1, max(whole) + 1)) <= found
        store.close()


def test_a_committed_reference_survives_kill_9(tmp_path: Path) -> None:
    """Ten kills at different moments: it always opens, nothing that was committed is lost."""
    kill_at_random(tmp_path, times=10, seed=1)


@pytest.mark.system
@pytest.mark.timeout(600)
def test_a_committed_reference_survives_kill_9_two_hundred_times(tmp_path: Path) -> None:
    """The long form of the same."""
    kill_at_random(tmp_path, times=200, seed=2)


def test_a_card_is_written_again_only_where_something_is_new(tmp_path: Path) -> None:
    """Seeing the same cards each tick costs no write; a moved card is news."""
    clock = FakeClock()
    store = Store.open(tmp_path, clock)
    store.see_cards((CARD,))
    first_s = clock.wall_s()
    clock.advance(60)
    store.see_cards((CARD,))
    assert store.inventory()[0].last_seen_wall_s == first_s
    clock.advance(3600)
    moved = CardIdentity(1, "GPU-a", name="NVIDIA H200", serial="1", pci_bus_id="0000:2b:00.0")
    store.see_cards((moved,))
    (card,) = store.inventory()
    assert (card.identity, card.first_seen_wall_s, card.last_seen_wall_s) == (moved, first_s, clock.wall_s())
    store.close()


def test_forgetting_a_card_removes_what_belonged_to_it_and_nothing_else(tmp_path: Path) -> None:
    """A replaced card leaves no reference behind; the others keep theirs."""
    store = Store.open(tmp_path, FakeClock())
    other = CardIdentity(1, "GPU-b", pci_bus_id="0000:2b:00.0")
    store.see_cards((CARD, other))
    for uuid in ("GPU-a", "GPU-b"):
        store.add_reference(reference(uuid=uuid))
        store.add_probe(record(START_S, uuid=uuid))
    store.forget_card("GPU-a")
    assert [card.identity.uuid for card in store.inventory()] == ["GPU-b"]
    assert [kept.uuid for kept in store.references()] == ["GPU-b"]
    assert [kept.uuid for kept in store.probes()] == ["GPU-b"]
    with pytest.raises(StateError, match=r"GPU-a: no such card .* known are: GPU-b"):
        store.forget_card("GPU-a")
    store.close()


def test_forgetting_is_refused_while_the_state_is_in_memory(tmp_path: Path) -> None:
    """A card forgotten in memory would come back with the file."""
    (tmp_path / "file").write_text("in the way")
    store = Store.open(tmp_path / "file" / "state", FakeClock())
    store.see_cards((CARD,))
    with pytest.raises(StateError, match="not on disk"):
        store.forget_card("GPU-a")
    store.close()


def test_a_row_of_unknown_form_costs_only_itself(tmp_path: Path) -> None:
    """One unreadable row is left out with a warning."""
    clock = FakeClock()
    path = filled(tmp_path, clock)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO reference VALUES ('GPU-b', 'k', 1, 'learnt', x'00')")
        connection.execute("INSERT INTO card VALUES ('GPU-b', 'not json', 1, 1)")
    connection.close()
    store = Store.open(tmp_path, clock)
    with capture_logs() as logs:
        assert store.references() == (reference(),)
        assert [card.identity for card in store.inventory()] == [CARD]
    assert [entry["event"] for entry in logs] == ["state_row_unreadable"] * 2
    store.close()


def test_the_file_says_whose_it_is(tmp_path: Path) -> None:
    """Header, version and journal are set, so that other tools and later versions can tell."""
    path = filled(tmp_path, FakeClock())
    with sqlite3.connect(path) as connection:
        values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        assert values == [APPLICATION_ID, VERSION]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def uncached(path: str) -> sqlite3.Connection:
    """Open a connection that reads pages from the file each time."""
    connection = database.connect(path)
    connection.execute("PRAGMA cache_size = 1")
    return connection


def test_a_file_damaged_while_it_is_open_is_left_behind_and_replaced(tmp_path: Path) -> None:
    """Reading goes on from memory at once; a minute later there is a sound file again."""
    clock = FakeClock()
    path = filled(tmp_path, clock)
    store = Store.open(tmp_path, clock, uncached)
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xaa" * (size - 4096))
    store.add_probe(record(START_S + 1e6))
    assert store.probes()[-1].wall_s == START_S + 1e6
    assert store.health.trouble == "damaged"
    clock.advance(RETRY_S)
    store.tend()
    assert store.health.durable
    assert store.health.set_aside
    store.close()
    again = Store.open(tmp_path, clock)
    assert again.probes()[-1].wall_s == START_S + 1e6
    again.close()


def test_a_faulty_statement_of_ours_is_not_taken_for_a_bad_disk(tmp_path: Path) -> None:
    """Writing to a closed store raises; it does not go on in memory unseen."""
    store = Store.open(tmp_path, FakeClock())
    store.close()
    with pytest.raises(sqlite3.ProgrammingError):
        store.save_document("a", b"")


def test_bad_files_of_the_same_second_are_all_kept(tmp_path: Path) -> None:
    """Each is moved to a name of its own."""
    clock = FakeClock()
    for number in range(3):
        (tmp_path / DATABASE_NAME).write_bytes(b"bad %d" % number * 100)
        Store.open(tmp_path, clock).close()
    kept = sorted(tmp_path.glob(f"{DATABASE_NAME}.bad-*"))
    assert len(kept) == 3
    assert {one.read_bytes()[:5] for one in kept} == {b"bad 0", b"bad 1", b"bad 2"}
