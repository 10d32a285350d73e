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
        (CARD, "currency: missing; must be a text of 1 to 8 characters"),
        ('currency = "EUR"\n', "card: must be at least one table, [[card]]"),
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
        (f'currency = "E\\u001b"\n{CARD}', ":1: currency: must be a text of 1 to 8 characters without control"),
        (f'currency = "E\u202e"\n{CARD}', "'E\ufffd' holds what cannot be printed"),
        (f'currency = "EUR"\n{CARD}prise = 2\n', ":5: prise: unknown, with the value 2; did you mean price?"),
        (
            f'currency = "EUR"\ncurency = "E"\n{CARD}',
            ":2: curency: unknown, with the value 'E'; did you mean currency?",
        ),
        (f'currency = "EUR"\n{CARD}[[card]]\nname = "x"\nprice = "1"\n', ":7: price: must be a number from 1e-09"),
        (f'currency = "EUR"\n{CARD}[[card]]\nname = "x"\n', ":5: price: missing; must be a number"),
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


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    """One run of the command is enough to mend a file."""
    with pytest.raises(ConfigError) as raised:
        load_prices(write(tmp_path, f"yeers = 3\n{CARD}watt = 1\n[[card]]\nprice = 0\n"))

    assert [fault.removeprefix(str(tmp_path)).split(": ")[:2] for fault in raised.value.faults] == [
        ["/prices.toml:1", "yeers"],
        ["/prices.toml", "currency"],
        ["/prices.toml:5", "watt"],
        ["/prices.toml:7", "price"],
        ["/prices.toml:6", "name"],
    ]


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    """The path is in the line."""
    with pytest.raises(ConfigError, match="no such file"):
        load_prices(tmp_path / "none.toml")
