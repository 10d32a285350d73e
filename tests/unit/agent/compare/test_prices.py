"""Price lists: strict, every fault one clear line."""

from pathlib import Path

import pytest

from agent.compare.prices import HOURS_A_YEAR, load_prices, plain_name
from agent.errors import ConfigError

CARD = '[[card]]\nname = "NVIDIA Made-Up 9000"\nprice = 30000\n'


def write(folder: Path, text: str) -> Path:
    """Return a file that holds ``text``."""
    path = folder / "prices.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_price_is_found_by_any_name_of_the_card(tmp_path: Path) -> None:
    """Case, spaces and the maker's name do not matter; the first name that is known counts."""
    prices = load_prices(write(tmp_path, f'currency = "EUR"\n{CARD}[[card]]\nname = "Mine"\nprice = 1\n'))

    assert prices.price_of("made-up  9000") == 30000
    assert prices.price_of("mine", "NVIDIA Made-Up 9000") == 1
    assert prices.price_of("another") is None
    assert plain_name("NVIDIA  H200") == "h200"


def test_hours_in_use_need_years_and_utilisation(tmp_path: Path) -> None:
    """Four years at a quarter of the time are a year of work."""
    told = load_prices(write(tmp_path, f'currency = "EUR"\nyears = 4\nutilisation = 0.25\n{CARD}'))
    silent = load_prices(write(tmp_path, f'currency = "EUR"\n{CARD}'))

    assert told.hours_in_use == HOURS_A_YEAR
    assert silent.hours_in_use is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "currency"),
        ('currency = "EUR"\n', "card"),
        ('currency = "EUR"\ncard = []\n', "card"),
        (f'currency = ""\n{CARD}', "currency"),
        (f'currency = "EUR"\npowerprice = 1\n{CARD}', "powerprice"),
        (f'currency = "EUR"\nyears = 0\nutilisation = 1\n{CARD}', "years"),
        (f'currency = "EUR"\nyears = 3\n{CARD}', "utilisation is missing"),
        (f'currency = "EUR"\nutilisation = 0.5\n{CARD}', "years is missing"),
        (f'currency = "EUR"\nyears = 3\nutilisation = 1.5\n{CARD}', "utilisation"),
        (f'currency = "EUR"\nenergy_price_per_kwh = nan\n{CARD}', "energy_price_per_kwh"),
        (f'currency = "EUR"\n{CARD}{CARD.replace("NVIDIA ", "")}', "named twice"),
        (f'currency = "EUR"\n{CARD}watts = 300\n', "without images_per_second"),
        ('currency = "EUR"\n[[card]]\nname = "x"\n', "price"),
        ('currency = "EUR"\n[[card]]\nname = "x"\nprice = -1\n', "price"),
        ('currency = "EUR"\n[[card]]\nname = "x"\nprice = inf\n', "price"),
        ('currency = "EUR"\n[[card]]\nname = "x"\nprice = "much"\n', "price"),
        ('currency = "EUR"\n[[card]]\nname = ""\nprice = 1\n', "name"),
        (f'currency = "E\\u001b"\n{CARD}', "'E\ufffd' holds what cannot be printed"),
        ("currency = ", "prices.toml"),
    ],
)
def test_each_fault_is_one_line_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    """A person who reads the line knows what to mend."""
    path = write(tmp_path, text)

    with pytest.raises(ConfigError) as raised:
        load_prices(path)

    (line,) = raised.value.faults
    assert told in line
    assert line.startswith(str(path))
    assert "\n" not in line


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """The path is in the line."""
    with pytest.raises(ConfigError, match="no such file"):
        load_prices(tmp_path / "none.toml")
