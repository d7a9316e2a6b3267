"""Blocks to one HTML page that needs nothing else: no network, no script, no other file."""

import base64
from html import escape
from urllib.parse import urlsplit

from leaderboards.pages.csv import csv_text
from leaderboards.pages.style import STYLE
from leaderboards.pages.svg.draw import draw
from tasks.blocks import (
    TIED,
    Block,
    Break,
    Bullets,
    Cell,
    Code,
    Heading,
    Link,
    Numbers,
    Page,
    Picture,
    Piece,
    Strong,
    Table,
    Text,
)

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing; its style and its images are in it."""


def html_page(page: Page) -> str:
    """A page as HTML."""
    body = [block_html(block, page.numbers, place) for place, block in enumerate(page.blocks)]
    title = escape(page.title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">',
            f"<title>{title}</title>",
            f"<style>\n{STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            f"<h1>{title}</h1>",
            *(text for text in body if text),
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def block_html(block: Block, numbers: Numbers | None, place: int) -> str:
    """The block with that place on its page; "" for one that is shown elsewhere or has no words."""
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Text):
        words = "".join(_piece(piece, numbers) for piece in block.pieces).strip()
        return f"<p>{words}</p>" if words else ""
    if isinstance(block, Bullets):
        return "\n".join(["<ul>", *(f"<li>{escape(item)}</li>" for item in block.items), "</ul>"])
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Picture):
        caption = f"<figcaption>{escape(block.title)}</figcaption>"
        return f"<figure>\n{caption}\n{draw(block, place)}\n</figure>"
    return ""


def _table(block: Table) -> str:
    """A table that scrolls by itself where it is wider than the page."""
    places = range(len(block.frame.columns))
    sides = [' class="left"' if place < block.left else "" for place in places]
    head = "".join(
        f'<th scope="col"{side}>{escape(str(name))}</th>'
        for name, side in zip(block.frame.columns, sides, strict=True)
    )
    rows = []
    for row in block.frame.itertuples(index=False, name=None):
        cells = [_cell(cell, sides[place], head=place == block.head) for place, cell in enumerate(row)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    caption = escape(block.caption)
    return "\n".join(
        [
            f'<div class="scroll" tabindex="0" role="region" aria-label="{caption}">',
            "<table>",
            *([f"<caption>{caption}</caption>"] if caption else []),
            f"<thead><tr>{head}</tr></thead>",
            "<tbody>",
            *rows,
            "</tbody>",
            "</table>",
            "</div>",
        ]
    )


def _cell(cell: Cell | str, side: str, *, head: bool) -> str:
    """A cell with its mark; the one that names its row is a heading."""
    text, mark = (cell.text, cell.mark) if isinstance(cell, Cell) else (str(cell), "none")
    if head:
        return f'<th scope="row"{side}>{escape(text)}</th>'
    if mark == "best":
        return f'<td class="best"><strong>{escape(text)}</strong></td>'
    tied = f' <abbr title="cannot be told from the best">{TIED}</abbr>' if mark == "tied" else ""
    return f"<td{side}>{escape(text)}{tied}</td>"


def _piece(piece: Piece, numbers: Numbers | None) -> str:
    """A piece of a paragraph."""
    if isinstance(piece, Break):
        return "\n"
    if isinstance(piece, Strong):
        return f"<strong>{escape(piece.text)}</strong>"
    if isinstance(piece, Code):
        return f"<code>{escape(piece.text)}</code>"
    if isinstance(piece, Link):
        return _link(piece, numbers)
    return escape(piece)


def _link(link: Link, numbers: Numbers | None) -> str:
    """A link; one to the page's own numbers holds them, and one to anything but a page is mere text."""
    text = escape(link.text)
    if numbers and link.target == f"{numbers.name}.csv":
        data = base64.b64encode(csv_text(numbers).encode()).decode()
        return (
            f'<a download="{escape(link.target)}" href="data:text/csv;charset=utf-8;base64,{data}">{text}</a>'
        )
    if urlsplit(link.target).scheme not in ("", "http", "https"):
        return text
    return f'<a href="{escape(link.target)}">{text}</a>'
