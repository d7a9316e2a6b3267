"""The only writer of HTML: templates in which all text from data is escaped."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from layerboard.leaderboards.blocks.blocks import MAYBE
from layerboard.leaderboards.blocks.display import NOT_WORSE
from layerboard.leaderboards.report.packing import script_digest
from layerboard.zoo.errors import printable

ASSETS = Path(__file__).parents[1] / "assets"


@cache
def _templates() -> Environment:
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {"MAYBE": MAYBE, "NOT_WORSE": NOT_WORSE}
    templates.tests["kind"] = lambda value, name: type(value).__name__ == name
    return templates


def filled(template: str, **values: object) -> Markup:
    """The template of that name with its values; text is escaped, `Markup` is inserted unchanged."""
    text = _templates().get_template(f"{template}.html").render(**values)
    return Markup(text)  # noqa: S704 - escaped there


def offline_page(
    template: str,
    script: str,
    styles: Sequence[str],
    *,
    scripts: str = "",
    images: bool = True,
    **values: object,
) -> str:
    """A whole page that runs its own script and reaches nothing: of one file of `ASSETS` and some styles.

    Its policy allows ``scripts`` besides, and embedded images.
    """
    code = (ASSETS / f"{script}.js").read_text(encoding="utf-8")
    style = "".join((ASSETS / f"{name}.css").read_text(encoding="utf-8") for name in styles)
    policy = (
        f"default-src 'none'; script-src {script_digest(code)}{scripts}; style-src 'unsafe-inline'; "
        f"{'img-src data:; ' * images}base-uri 'none'; form-action 'none'"
    )
    own = {"script": Markup(code), "style": Markup(style)}  # noqa: S704 - our own files
    return printable(filled(template, policy=policy, **own, **values))


class PageSection(NamedTuple):
    """A section of the page, without scripts, styles or external URLs, which its policy forbids."""

    anchor: str  # its unique ``id``: letters, digits and hyphens
    short: str  # its name in the list of sections
    title: str
    html: Markup
