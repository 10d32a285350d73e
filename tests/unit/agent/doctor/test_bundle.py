"""The support archive holds what helps and nothing that names a machine."""

import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from agent.doctor.bundle import BundleError, redacted, write_bundle
from agent.doctor.command import doctor
from agent.invocation import Invocation

_UUID = "GPU-0a1b2c3d-0000-4000-8000-0123456789ab"


def test_uuids_addresses_names_and_secrets_are_left_out() -> None:
    """The same card keeps the same mask; loopback stays; the value of a secret goes."""
    text = f"{_UUID} again {_UUID} at 10.1.2.3 and 127.0.0.1 on gpu-node-7\n"
    text += 'password_file = "/etc/pw"\nserial 1650012345678'
    got = redacted(text, ["gpu-node-7", "1650012345678", ""])
    assert got == (
        "GPU-masked-0 again GPU-masked-0 at (address) and 127.0.0.1 on (name)\n"
        "password_file = (left out)\nserial (name)"
    )


def test_the_archive_holds_documents_and_recording(tmp_path: Path) -> None:
    """Texts redacted, the recording as it is."""
    path = tmp_path / "bundle.tgz"
    write_bundle(path, {"facts.json": f'"{_UUID}"'}, b"line\n", [])
    with tarfile.open(path) as archive:
        held = {name: archive.extractfile(name) for name in archive.getnames()}
        contents = {name: file.read() for name, file in held.items() if file}
    assert contents == {"heatsoak/facts.json": b'"GPU-masked-0"', "heatsoak/cards.jsonl": b"line\n"}


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    """The path and the system's reason."""
    with pytest.raises(BundleError, match="cannot be written: No such file"):
        write_bundle(tmp_path / "no" / "bundle.tgz", {}, b"", [])


def test_an_archive_is_never_overwritten(tmp_path: Path) -> None:
    """It may be the only one of what went wrong."""
    path = tmp_path / "bundle.tgz"
    path.write_bytes(b"the first")
    with pytest.raises(BundleError, match="is there already; name another file"):
        write_bundle(path, {}, b"", [])
    assert path.read_bytes() == b"the first"


def test_the_command_refuses_before_it_measures(tmp_path: Path) -> None:
    """Nobody waits for an archive that cannot be had."""
    path = tmp_path / "bundle.tgz"
    path.touch()
    invocation = Invocation(environ={}, uid=1000, state_dir=str(tmp_path))
    result = CliRunner().invoke(doctor, ["--bundle", str(path)], obj=invocation)
    assert isinstance(result.exception, BundleError)
