"""Settings written as TOML."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.load import load
from agent.config.sample import render, sample
from agent.config.schema import Setting, settings_table
from agent.config.settings import (
    AgentSettings,
    HostSettings,
    NodeSettings,
    ProbeSettings,
    Settings,
    VerdictSettings,
    WebSettings,
)
from agent.model.vocabulary import RULE_NAMES

SAMPLE = Path(__file__).parents[4] / "deploy" / "heatsoak.sample.toml"

TEXT = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=20)
SETTINGS = st.builds(
    Settings,
    node=st.builds(NodeSettings, name=TEXT, rack=TEXT, position=TEXT, expected_gpus=st.integers(-1, 10**20)),
    agent=st.builds(AgentSettings, tick_s=st.floats(0.05, 60), state_dir=TEXT),
    web=st.builds(
        WebSettings,
        listen=st.lists(st.integers(0, 65535).map(str), min_size=1, max_size=3).map(tuple),
        timeout_s=st.floats(0, exclude_min=True, allow_infinity=False),
    ),
    host=st.builds(HostSettings, network_exclude=TEXT.map(re.escape)),
    probe=st.builds(ProbeSettings, enabled=st.booleans(), jitter=st.floats(0, 1)),
    verdicts=st.builds(
        VerdictSettings, rules=st.dictionaries(st.sampled_from(RULE_NAMES), st.sampled_from(["off", "shadow", "on"]))
    ),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=SETTINGS)
def test_what_is_rendered_loads_back_equal(tmp_path: Path, wanted: Settings) -> None:
    """`config show` prints a configuration that means the same."""
    path = tmp_path / "c.toml"
    path.write_text(render(wanted), encoding="utf-8")
    assert load(str(path), {}) == wanted


def test_the_committed_sample_is_current() -> None:
    """The sample file is generated, never edited: `heatsoak config sample > deploy/heatsoak.sample.toml`."""
    assert SAMPLE.read_text(encoding="utf-8") == sample()


def test_the_sample_loads_to_the_defaults_also_with_every_key_uncommented(tmp_path: Path) -> None:
    """What the sample shows as defaults are the defaults."""
    assert load(str(SAMPLE), {}) == Settings()
    keys = {setting.key for setting in settings_table().values()}
    uncommented = re.sub(rf"^# ({'|'.join(keys)} = )", r"\1", sample(), flags=re.MULTILINE)
    assert uncommented.count("\n#") < sample().count("\n#")
    path = tmp_path / "c.toml"
    path.write_text(uncommented)
    assert load(str(path), {}) == Settings()


@pytest.mark.parametrize("setting", settings_table().values(), ids=lambda setting: setting.dotted)
def test_every_setting_stands_in_the_sample_with_its_meaning(setting: Setting) -> None:
    """Each key is shown, with valid values in words."""
    text = " ".join(line.removeprefix("# ") for line in sample().splitlines())
    assert f"{setting.key} = " in text
    assert f"Must be {setting.expected}." in text


@pytest.mark.parametrize("setting", settings_table().values(), ids=lambda setting: setting.dotted)
def test_a_default_is_itself_valid(setting: Setting) -> None:
    """No default would be refused by its own rule."""
    assert setting.convert(setting.default) == setting.default
