"""A picture as SVG: on a page, where it takes the page's colours, or as a file of its own."""

from html import escape

from leaderboards.pages.svg.frame import Drawn
from leaderboards.pages.svg.heat import heat_parts
from leaderboards.pages.svg.lines import facets_parts, figure_parts
from leaderboards.pages.svg.maps import gallery_parts, maps_parts
from tasks.blocks import Gallery, HeatMap, Maps, Picture, Plot, alternative

_LOOK = (
    "<style>svg{color:#1b1f24;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}</style>"
)
"""How a file looks by itself, light or dark as the reader's system is."""


def draw(picture: Picture, place: int = 0) -> str:
    """The picture as an ``<svg>`` element; its text is escaped, and its title names it for screen readers.

    Args:
        picture: What is shown.
        place: Its number on its page.
    """
    return _element(picture, _parts(picture, f"p{place}-", tips=True), "")


def svg_file(picture: Picture) -> str:
    """The picture as the text of a file: the same for the same numbers, and small."""
    return _element(picture, _parts(picture, "p-", tips=False), _LOOK) + "\n"


def _parts(picture: Picture, prefix: str, *, tips: bool) -> Drawn:
    """What stands inside of a picture."""
    if isinstance(picture, Plot):
        several = "panel" in picture.frame
        return facets_parts(picture, prefix) if several else figure_parts(picture, prefix, tips=tips)
    if isinstance(picture, HeatMap):
        return heat_parts(picture)
    if isinstance(picture, Maps):
        return maps_parts(picture)
    assert isinstance(picture, Gallery)
    return gallery_parts(picture, prefix)


def _element(picture: Picture, drawn: Drawn, look: str) -> str:
    """A whole element."""
    title = escape(picture.title)
    alone = isinstance(picture, Plot) and "panel" not in picture.frame
    said = title if alone else escape(alternative(picture))
    size = f'width="{drawn.width:g}" height="{drawn.height:.0f}" ' if look else ""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {drawn.width:g} {drawn.height:.0f}" {size}'
            f'role="img" aria-label="{said}" font-family="sans-serif" font-size="12" fill="currentColor">',
            f"<title>{title}</title>",
            *([look] if look else []),
            *drawn.parts,
            "</svg>",
        ]
    )
