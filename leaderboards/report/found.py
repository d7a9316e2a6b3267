"""The page of what was found in a folder of images, as one offline HTML file: a query, matches, and pairs."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

from markupsafe import Markup
from PIL import Image

from layerboard.leaderboards.report.packing import image_data
from layerboard.leaderboards.report.page import ASSETS
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.zoo.errors import printable

SIDE = 240  # pixels of the longer side of a picture


class FoundPicture(NamedTuple):
    """A small picture with its name."""

    data: Mapping[str, Any]  # of `image_data`
    name: str
    caption: str
    size: tuple[int, int]  # width and height of the whole image
    box: tuple[float, ...] | None  # left, top, width and height of a region, in pixels of that

    @classmethod
    def of(
        cls, image: Image.Image, name: str, caption: str = "", box: tuple[float, ...] | None = None
    ) -> Self:
        """The picture of an image, which is not kept."""
        return cls(image_data(image, SIDE), name, caption, image.size, box)


class FoundSection(NamedTuple):
    """Pictures under a title: those of one row belong together."""

    title: str
    notes: tuple[str, ...]
    rows: Sequence[Sequence[FoundPicture]]


class Found(NamedTuple):
    """The content of a page."""

    title: str
    notes: tuple[str, ...]
    sections: Sequence[FoundSection]


def found_page(found: Found) -> str:
    """The page of what was found; pictures are in it, and it has no script."""
    style = Markup((ASSETS / "report.css").read_text(encoding="utf-8"))  # noqa: S704 - our own file
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return printable(
        filled(
            "found", policy=policy, style=style, title=found.title, notes=found.notes, sections=found.sections
        )
    )
