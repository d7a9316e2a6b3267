"""A section of the report that others write: a heading and markup that needs neither script nor style."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the report between its own, such as the gallery of failures and successes.

    The page writes the heading, the frame and the entry of the table of contents around it. Its style sheet
    dresses plain elements: ``p``, ``ul``, ``figure`` with ``img`` (``src`` a ``data:`` address, always with
    ``alt``) or ``svg``, ``figcaption``, ``details`` with ``summary``, and ``table`` inside of
    ``<div class="scroll" tabindex="0" role="region" aria-label="...">``. ``<div class="gallery">`` puts its
    figures side by side, as many as the width allows.

    Attributes:
        anchor: Its ``id`` on the page: letters, digits and hyphens, none that another section has.
        title: Its heading, plain text; the page escapes it.
        html: What stands below the heading. Everything in it that comes from data is escaped already; it has
            no script, no style sheet, no ``style`` attribute and no address outside the file, which the
            page's policy forbids.
    """

    anchor: str
    title: str
    html: str
