"""Blocks as Markdown. Named pictures are files beside the page; others are left out."""

import re
from html import escape
from urllib.parse import quote

import pandas as pd
from tabulate import tabulate

from layerboard.leaderboards.blocks import blocks
from layerboard.leaderboards.blocks.blocks import MAYBE, Block, Cell, Page, Piece
from layerboard.leaderboards.writers.figures import figure_path
from layerboard.zoo.errors import printable

_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<!\w)_|_(?!\w)")
_ADDRESS = "/:?#&=%-._~"  # characters of a URL that are not escaped
_ENTITY = re.compile(r"&(?=#?\w+;)")
_STARTS_BLOCK = re.compile(r"^([#>+=-])|^(\d+)([.)]\s)")


def markdown_page(page: Page) -> str:
    """A page as Markdown that ends with a line break."""
    texts = [f"# {plain(page.title)}", *(_block(block, page) for block in page.blocks)]
    return printable("\n\n".join(text for text in texts if text) + "\n")


def markdown_table(frame: pd.DataFrame, left: int = 1) -> str:
    """A data frame of text and `Cell` as a Markdown table; the first columns aligned left, others right."""
    alignment = ["left" if position < left else "right" for position in range(len(frame.columns))]
    return tabulate(
        [[cell_text(cell) for cell in row] for row in frame.itertuples(index=False, name=None)],
        headers=[plain(str(column)) for column in frame.columns],
        tablefmt="pipe",
        colalign=alignment if len(frame) else None,
        disable_numparse=True,
    )


def cell_text(cell: Cell | str) -> str:
    """A cell with its mark."""
    if not isinstance(cell, Cell):
        return plain(str(cell))
    text = plain(cell.words)
    return {"best": f"**{text}**", "maybe": f"{text} {MAYBE}", "none": text}[cell.mark]


def plain(text: str) -> str:
    """Text on one line that is shown literally: it cannot break a table, start a tag or act as markup."""
    text = _ENTITY.sub("&amp;", " ".join(text.split()))
    return _SPECIAL.sub(lambda found: f"\\{found[0]}", text).replace("<", "&lt;")


def _block(block: Block, page: Page) -> str:
    if isinstance(block, blocks.Heading):
        return f"{'#' * block.level} {plain(block.text)}"
    if isinstance(block, blocks.Text):
        return _text(block)
    if isinstance(block, blocks.Bullets):
        texts = (_text(item) if isinstance(item, blocks.Text) else _line(plain(item)) for item in block.items)
        return "\n".join(f"- {text}" for text in texts)
    if isinstance(block, blocks.Picture) and block.name:
        address = quote(figure_path(page.name, block.name), safe=_ADDRESS)
        return f"**{plain(block.title)}**\n\n![{plain(blocks.alternative(block))}]({address})"
    if not isinstance(block, blocks.Table):
        return ""
    text = markdown_table(block.frame, block.left)
    if not block.folded:
        return text
    return f"<details><summary>{escape(' '.join(block.caption.split()))}</summary>\n\n{text}\n\n</details>"


def _text(block: blocks.Text) -> str:
    return _line("".join(_piece(piece) for piece in block.pieces).strip())


def _line(text: str) -> str:
    """Text whose first character does not start a list, a heading or a quotation."""
    return _STARTS_BLOCK.sub(lambda found: rf"\{found[1]}" if found[1] else rf"{found[2]}\{found[3]}", text)


def _piece(piece: Piece) -> str:
    if isinstance(piece, str):  # with a space at each end if it has one, since other text is adjacent
        inner = plain(piece)
        if not inner:
            return " " if piece else ""
        return f"{' ' if piece[0].isspace() else ''}{inner}{' ' if piece[-1].isspace() else ''}"
    text = plain(piece.text)
    link = f"[{text}]({quote(piece.target, safe=_ADDRESS)})"
    return {"strong": f"**{text}**", "code": code_span(piece.text), "link": link, "break": "\n"}[piece.kind]


def code_span(text: str) -> str:
    """A code span, whose fence is longer than any run of backticks in it."""
    text = " ".join(text.split())
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    gap = " " if "`" in text else ""
    return f"{fence}{gap}{text}{gap}{fence}"
