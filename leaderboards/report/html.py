"""The one writer of HTML: templates in which all that comes from data is escaped."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from layerboard.tasks.blocks import TIED


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["TIED"] = TIED
    templates.tests["kind"] = lambda value, name: type(value).__name__ == name
    return templates


def filled(template: str, **values: object) -> Markup:
    """The template of that name with its values; text in them is escaped, `Markup` stays as it is."""
    return Markup(_templates().get_template(f"{template}.html").render(**values))  # noqa: S704 - escaped there


class PageSection(NamedTuple):
    """A section of the page, without scripts, styles or outer addresses, which its policy forbids."""

    anchor: str  # its ``id``: letters, digits and hyphens, none that another section has
    short: str  # what it is called in the list of sections
    title: str
    html: Markup
