"""From file and environment to settings, or to every fault at once."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.load import changes_needing_restart, load, unknown_variables, until_restart
from agent.config.schema import settings_table
from agent.config.settings import AgentSettings, HostSettings, LogSettings, NodeSettings, Settings, WebSettings
from agent.errors import ConfigError
from agent.model.quantities import QUANTITIES


def faults_of(folder: Path, content: str | bytes, **environ: str) -> tuple[str, ...]:
    """Return the faults of a file, its folder cut from their places."""
    path = folder / "heatsoak.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        load(str(path), environ)
    return tuple(fault.replace(f"{folder}/", "") for fault in caught.value.faults)


def loaded_or_faults(path: str, environ: dict[str, str]) -> Settings | tuple[str, ...]:
    """Return what ``load`` returns, or the faults it raises; anything else it raises goes through."""
    try:
        return load(path, environ)
    except ConfigError as error:
        return error.faults


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    """The default file may be missing."""
    assert load(None, {}, tmp_path / "missing.toml") == Settings()


def test_an_empty_file_gives_the_defaults(tmp_path: Path) -> None:
    """Empty is a configuration like another."""
    (tmp_path / "c.toml").touch()
    assert load(str(tmp_path / "c.toml"), {}) == Settings()


def test_the_named_file_goes_before_the_variable_and_the_default(tmp_path: Path) -> None:
    """Command line, then HEATSOAK_CONFIG, then the default path."""
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(f'[node]\nrack = "{name}"\n')
    environ = {"HEATSOAK_CONFIG": str(tmp_path / "b")}
    assert load(str(tmp_path / "a"), environ, tmp_path / "c").node.rack == "a"
    assert load(None, environ, tmp_path / "c").node.rack == "b"
    assert load(None, {"HEATSOAK_CONFIG": ""}, tmp_path / "c").node.rack == "c"


def test_every_kind_of_value_is_read(tmp_path: Path) -> None:
    """Texts, numbers, lists, nested tables and tables of names."""
    path = tmp_path / "c.toml"
    path.write_text(
        'agent.tick_s = 2\n[node]\nexpected_gpus = 8\n[web]\nlisten = [":1", "unix:/run/h.sock"]\n'
        '[host]\noff = ["network"]\n[verdicts.throttle]\nwindow_s = 5\n[verdicts]\nrules = {xid = "off"}\n'
    )
    loaded = load(str(path), {})
    assert loaded.agent == AgentSettings(tick_s=2.0)
    assert loaded.node == NodeSettings(expected_gpus=8)
    assert loaded.web == WebSettings(listen=(":1", "unix:/run/h.sock"))
    assert loaded.host == HostSettings(off=("network",))
    assert (loaded.verdicts.throttle.window_s, loaded.verdicts.rules) == (5.0, {"xid": "off"})


def test_all_faults_are_told_at_once_each_with_its_place(tmp_path: Path) -> None:
    """File, line, key, value and what would be right, in the order of the file."""
    faults = faults_of(
        tmp_path,
        'listen = ":1"\n[web]\nlistn = [":1"]\nlisten = [":1", "nonsense"]\nmax_connections = 0\n'
        '[agent]\ntick_s = "x"\n[host]\noff = ["cpuu"]\n"disk_exclude" = "("\n[wbe]\n[verdicts]\nthrottle = 3\n'
        '[log]\nlevel = "loud"\n[probe]\nenabled = 1\nxyzzy = true\n',
        HEATSOAK_NODE_EXPECTED_GPUS="many",
    )
    expected = (
        ("heatsoak.toml:1: listen: ", "':1'", "did you mean web.listen?"),
        ("heatsoak.toml:3: web.listn: ", "[':1']", "did you mean listen?"),
        ("heatsoak.toml:4: web.listen: ", "`[::]:9838`", "not 'nonsense'"),
        ("heatsoak.toml:5: web.max_connections: ", "from 1 to 10000", "not 0"),
        ("heatsoak.toml:7: agent.tick_s: ", "a number from 0.05 to 60", "not 'x'"),
        ("heatsoak.toml:9: host.off: ", "cpu, load", "not ['cpuu']"),
        ("heatsoak.toml:10: host.disk_exclude: ", "regular expression", "not '('"),
        ("heatsoak.toml:11: wbe: ", "{}", "did you mean web?"),
        ("heatsoak.toml:13: verdicts.throttle: ", "[verdicts.throttle]", "not 3"),
        ("heatsoak.toml:15: log.level: ", "debug, info, warning, error", "not 'loud'"),
        ("heatsoak.toml:17: probe.enabled: ", "true or false", "not 1"),
        ("heatsoak.toml:18: probe.xyzzy: ", "True", "valid are enabled, device, "),
        ("HEATSOAK_NODE_EXPECTED_GPUS: node.expected_gpus: ", "a whole number of at least -1", "not 'many'"),
    )
    assert len(faults) == len(expected)
    for fault, (place, *parts) in zip(faults, expected, strict=True):
        assert fault.startswith(place)
        assert all(part in fault for part in parts), fault
        assert "\n" not in fault


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"[web\n", "heatsoak.toml:1:5: not valid TOML"),
        (b"[web]\nlisten = ", "heatsoak.toml:2: not valid TOML"),
        (b"[web]\n[web]\n", "heatsoak.toml:2:5: not valid TOML"),
        (b"x = '''\n\n", "heatsoak.toml:3: not valid TOML"),
        (b"\xef\xbb\xbf[web]\n", "heatsoak.toml:1: starts with a byte order mark"),
        (b'[node]\nrack = "\xff"\n', "heatsoak.toml:2: byte 0xff is not UTF-8"),
        (b'[node]\nrack = "a\0b"\n', "heatsoak.toml:2:10: not valid TOML"),
        (b'[node]\nrack = "a\\u0000b"\n', "heatsoak.toml:2: node.rack: must be a text without control characters"),
        (b"x = " + b"[" * 100_000, "nested too deeply"),
        (b"x = 0x" + b"f" * 9000, "heatsoak.toml:1: x: unknown, with the value a int too large to show"),
        (b"[agent]\ntick_s = nan", "heatsoak.toml:2: agent.tick_s: must be a number"),
        (b"[probe]\ninterval_s = inf", "heatsoak.toml:2: probe.interval_s: must be a number"),
        (b"[web]\nlisten = []", "heatsoak.toml:2: web.listen: must be a list of texts, at least one"),
        (b"#" * (1 << 20) + b"\n", "larger than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_configuration_is_one_fault(tmp_path: Path, content: bytes, fault: str) -> None:
    """Broken syntax, encodings and sizes are told with their place, without a traceback."""
    (told,) = faults_of(tmp_path, content)
    assert fault in told


def test_a_named_file_that_is_missing_is_a_fault(tmp_path: Path) -> None:
    """Only the default file may be missing."""
    with pytest.raises(ConfigError, match="no such file"):
        load(str(tmp_path / "none.toml"), {})
    with pytest.raises(ConfigError, match="no such file"):
        load(None, {"HEATSOAK_CONFIG": str(tmp_path / "none.toml")})


@pytest.mark.parametrize("path", ["/", "/dev/zero", "a\0b", "x" * 5000, "/dev/null/x"])
def test_what_cannot_be_read_is_a_fault(path: str) -> None:
    """Directories, devices and impossible names are refused, not waited for."""
    with pytest.raises(ConfigError):
        load(path, {})


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    """Overrides by name, lists and tables of names separated by commas."""
    path = tmp_path / "c.toml"
    path.write_text('[node]\nrack = "file"\nposition = "file"\n')
    environ = {
        "HEATSOAK_NODE_RACK": "null",
        "HEATSOAK_WEB_LISTEN": ":1, [::]:2",
        "HEATSOAK_AGENT_TICK_S": "0.5",
        "HEATSOAK_PROBE_ENABLED": "false",
        "HEATSOAK_HOST_OFF": "",
        "HEATSOAK_VERDICTS_RULES": "xid=off, nvlink=on",
        "HEATSOAK_VERDICTS_THROTTLE_WINDOW_S": "7",
    }
    loaded = load(str(path), environ)
    assert loaded.node == NodeSettings(rack="null", position="file")
    assert loaded.web.listen == (":1", "[::]:2")
    assert (loaded.agent.tick_s, loaded.probe.enabled, loaded.host.off) == (0.5, False, ())
    assert loaded.verdicts.rules == {"xid": "off", "nvlink": "on"}
    assert loaded.verdicts.throttle.window_s == 7.0


def test_a_variable_that_is_no_setting_is_named_with_the_nearest() -> None:
    """A typing error warns; our own other variables and those of a Kubernetes service do not."""
    environ = {
        "HEATSOAK_WEB_LISTN": ":1",
        "HEATSOAK_CONFIG": "x",
        "HEATSOAK_STATE_DIR": "x",
        "HEATSOAK_LOG_LEVEL": "info",
        "HEATSOAK_SERVICE_HOST": "10.0.0.1",
        "HEATSOAK_SERVICE_PORT_METRICS": "9838",
        "HEATSOAK_PORT": "tcp://10.0.0.1:9838",
        "HEATSOAK_PORT_9838_TCP_ADDR": "10.0.0.1",
        "PATH": "/bin",
    }
    assert unknown_variables(environ) == ("HEATSOAK_WEB_LISTN is no setting; did you mean HEATSOAK_WEB_LISTEN?",)


def test_only_changes_that_a_reload_cannot_make_need_a_restart() -> None:
    """Listening addresses need one, labels and log level do not."""
    old = Settings()
    new = Settings(web=WebSettings(listen=(":1",)), node=NodeSettings(rack="r"), log=LogSettings(level="debug"))
    assert changes_needing_restart(old, new) == ("web.listen",)
    assert changes_needing_restart(old, old) == ()


@given(st.sampled_from(sorted(settings_table())), st.sampled_from(sorted(settings_table())))
def test_a_reload_takes_over_what_it_can_and_nothing_by_halves(one: str, other: str) -> None:
    """What needs a restart stays everywhere as it was, the rest is as wanted, whatever changes together."""
    running = Settings()
    wanted = changed(changed(running, one), other)
    kept = until_restart(running, wanted)
    for dotted, setting in settings_table().items():
        assert setting.value_in(kept) == setting.value_in(running if setting.needs_restart else wanted), dotted
    assert until_restart(running, running) == running


def changed(settings: Settings, dotted: str) -> Settings:
    """Return ``settings`` with another value, of whatever type, under one name."""
    section, _, key = dotted.rpartition(".")
    path = section.split(".")
    structs: list[Any] = [settings]
    for name in path:
        structs.append(getattr(structs[-1], name))
    value: Any = f"not {getattr(structs[-1], key)}"
    for struct, name in zip(reversed(structs), [key, *reversed(path)], strict=True):
        value = msgspec.structs.replace(struct, **{name: value})
    assert isinstance(value, Settings)
    return value


@pytest.mark.parametrize("dotted", ["host.proc_root", "host.sys_root", "probe.trust_pids"])
def test_what_is_read_at_the_start_alone_needs_a_restart(dotted: str) -> None:
    """The judge, the allocations and the probes hold these from the start on."""
    assert changes_needing_restart(Settings(), changed(Settings(), dotted)) == (dotted,)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_settings_or_faults(tmp_path: Path, content: bytes) -> None:
    """Nothing but ConfigError comes out of an arbitrary file."""
    path = tmp_path / "c.toml"
    path.write_bytes(content)
    loaded = loaded_or_faults(str(path), {})
    assert isinstance(loaded, Settings) or all(fault.isprintable() for fault in loaded)


KEYS = st.sampled_from(
    ["web", "listen", "agent", "tick_s", "host", "off", "verdicts", "rules", "throttle", "a b", "\n"]
)
VALUES = st.recursive(
    st.integers() | st.floats() | st.booleans() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def toml(value: object) -> str:
    """Write any value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(char):08x}" for char in value if not "\ud800" <= char <= "\udfff") + '"'
    return repr(value)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=st.dictionaries(KEYS, VALUES, max_size=4), environ=st.text(max_size=20))
def test_any_toml_and_environment_give_settings_or_faults(
    tmp_path: Path, document: dict[str, object], environ: str
) -> None:
    """Values of every type in every place are taken or told, one line each."""
    path = tmp_path / "c.toml"
    path.write_text("".join(f"{toml(key)} = {toml(value)}\n" for key, value in document.items()))
    loaded = loaded_or_faults(str(path), {"HEATSOAK_WEB_LISTEN": environ, "HEATSOAK_PROBE_THREADS": environ})
    assert isinstance(loaded, Settings) or all(fault.isprintable() for fault in loaded)


def test_every_quantity_can_be_switched_off_and_nothing_else(tmp_path: Path) -> None:
    """The keys are those of the quantities table."""
    keys = tuple(row.key for row in QUANTITIES)
    environ = {"HEATSOAK_NVML_OFF": ",".join(keys)}
    assert load(None, environ, tmp_path / "none").nvml.off == keys
    (fault,) = faults_of(tmp_path, '[nvml]\noff = ["xyzzy"]\n')
    assert fault.startswith("heatsoak.toml:2: nvml.off: must be a quantity of docs/METRICS.md (")
    assert fault.endswith(", not 'xyzzy'")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (
            '[verdicts.rules]\nxid = "on"\n\nthermal_throtling = "off"\n',
            "heatsoak.toml:4: verdicts.rules.thermal_throtling",
        ),
        ('[verdicts.rules]\nxid = "on"\nthermal = "maybe"\n', "heatsoak.toml:3: verdicts.rules.thermal: "),
        ('[verdicts]\nrules.xid = "on"\nrules.xidd = "on"\n', "heatsoak.toml:3: verdicts.rules.xidd: "),
        ('[verdicts]\nrules = {xidd = "on"}\n', "heatsoak.toml:2: verdicts.rules.xidd: "),
    ],
)
def test_an_entry_of_a_table_of_names_has_its_own_place(tmp_path: Path, content: str, place: str) -> None:
    """Not the table's: it may have thirty lines."""
    (told,) = faults_of(tmp_path, content)
    assert told.startswith(place)


def test_every_wrong_entry_of_a_table_is_told(tmp_path: Path) -> None:
    """One line each."""
    told = faults_of(tmp_path, '[verdicts.rules]\nxidd = "on"\nxid = 3\nthermall = "off"\n')
    assert [fault.split(" ")[0] for fault in told] == ["heatsoak.toml:2:", "heatsoak.toml:3:", "heatsoak.toml:4:"]


def test_a_rule_that_does_not_exist_is_named_with_the_nearest() -> None:
    """A misspelt rule would stay switched on without a word."""
    with pytest.raises(ConfigError, match="did you mean thermal_throttling"):
        load(None, {"HEATSOAK_VERDICTS_RULES": "thermal_throtling=off"}, Path("/nonexistent"))
