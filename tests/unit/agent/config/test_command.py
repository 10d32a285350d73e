"""``heatsoak config`` as the composition root offers it."""

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import heatsoak
from agent.errors import ConfigError
from tests.support.certificates import make_ca, make_cert

RUNNER = CliRunner(env={name: None for name in os.environ if name.startswith("HEATSOAK_")})


def checked(directory: Path, web: str) -> tuple[str, ...]:
    """Return what ``config check`` finds in a web configuration; empty where it says that all is right."""
    (directory / "web.yml").write_text(web)
    config = directory / "heatsoak.toml"
    config.write_text(f'[web]\nconfig_file = "{directory}/web.yml"\n')
    result = RUNNER.invoke(heatsoak.cli, ["--config", str(config), "config", "check"], standalone_mode=False)
    if result.exception is None:
        assert result.output == "the configuration is right\n"
        return ()
    assert isinstance(result.exception, ConfigError), result.exception
    assert result.exception.exit_code == 2
    return result.exception.faults


@pytest.mark.parametrize(
    ("web", "faults"),
    [
        (
            "basic_auth_user: {}\nrate_limits: {}\n",
            ("right would be `basic_auth_users`", "right would be `rate_limit`"),
        ),
        ("basic_auth_users: {alice: secret}\n", ("basic_auth_users.alice: the value is not a bcrypt hash",)),
        (
            "tls_server_config: {cert_file: no.crt, key_file: no.key}\n",
            ("cert and key (no.crt, no.key): No such file",),
        ),
        ("a: [\n", ("no YAML",)),
    ],
)
def test_the_web_configuration_is_checked_too(tmp_path: Path, web: str, faults: tuple[str, ...]) -> None:
    """One line a fault, with the file: `run` would refuse to start, so the check must not call it right."""
    told = checked(tmp_path, web)
    assert len(told) == len(faults)
    for line, part in zip(told, faults, strict=True):
        assert line.startswith(f"{tmp_path}/web.yml: ")
        assert part in line


def test_a_web_configuration_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    """Named with what would be right."""
    config = tmp_path / "heatsoak.toml"
    config.write_text(f'[web]\nconfig_file = "{tmp_path}/nowhere.yml"\n')
    result = RUNNER.invoke(heatsoak.cli, ["--config", str(config), "config", "check"], standalone_mode=False)
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception).startswith(f"{tmp_path}/nowhere.yml: cannot be read: No such file or directory; right")


def test_a_right_web_configuration_passes(tmp_path: Path) -> None:
    """With the files it names."""
    certificate = make_cert(tmp_path, make_ca(tmp_path), "server")
    assert not checked(tmp_path, f"tls_server_config: {{cert_file: {certificate.cert}, key_file: {certificate.key}}}\n")
