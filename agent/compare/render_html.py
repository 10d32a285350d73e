"""A comparison as one HTML page: nothing is fetched, readable on a phone, light and dark."""

from collections.abc import Sequence
from importlib import resources
from typing import Final

import jinja2

from agent.compare.model import Comparison, Picture
from agent.compare.render import is_numeric, tables

_TEMPLATE: Final = "compare.html"


def page(compared: Comparison, pictures: Sequence[Picture], without: str = "") -> str:
    """Return the page; ``without`` says why there are no pictures. Labels and all other text are escaped."""
    text = (resources.files("agent") / "data" / _TEMPLATE).read_text(encoding="utf-8")
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, undefined=jinja2.StrictUndefined)
    return environment.from_string(text).render(
        compared=compared, tables=list(tables(compared)), pictures=pictures, without=without, numeric=is_numeric
    )
