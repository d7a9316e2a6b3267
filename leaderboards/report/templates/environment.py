"""The only writer of HTML: templates in which all text from data is escaped."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import MAYBE


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["MAYBE"] = MAYBE
    templates.tests["kind"] = lambda value, name: type(value).__name__ == name
    return templates


def filled(template: str, **values: object) -> Markup:
    """The template of that name with its values; text is escaped, `Markup` is inserted unchanged."""
    text = _templates().get_template(f"{template}.html").render(**values)
    return Markup(text)  # noqa: S704 - escaped there


class PageSection(NamedTuple):
    """A section of the page, without scripts, styles or external URLs, which its policy forbids."""

    anchor: str  # its unique ``id``: letters, digits and hyphens
    short: str  # its name in the list of sections
    title: str
    html: Markup
