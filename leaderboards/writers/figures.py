"""The figures of a page as files beside it: ``<page>/<picture>.svg``."""

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from layerboard.leaderboards.blocks.blocks import Page, Picture
from layerboard.leaderboards.charts.svg import svg_file
from layerboard.zoo.atomic import write_whole

_SHOWN = re.compile(r"\]\(([^)\s]+\.svg)\)")


def figure_path(page: str, name: str) -> str:
    """Path of a figure relative to its page."""
    return f"{page}/{name}.svg"


def write_page_figures(page: Page, folder: Path) -> None:
    """Write the named figures of a page into ``folder/<page>``.

    Figures of the former page there that this one lacks are removed; other files are left alone.
    """
    former = folder / f"{page.name}.md"
    text = former.read_text(encoding="utf-8", errors="replace") if former.is_file() else ""
    paths = _shown(text, page.name)
    pictures = [block for block in page.blocks if isinstance(block, Picture) and block.name]
    texts = {figure_path(page.name, each.name): svg_file(each, page.backbones) for each in pictures}
    for path, text in texts.items():
        write_whole(folder / path, text)
    for path in paths - {*texts}:
        (folder / path).unlink(missing_ok=True)
    with suppress(OSError):  # not empty, or not there
        (folder / page.name).rmdir()


def figure_differences(markdown: str, folder: Path, page: str) -> list[str]:
    """Differences between the figures that a page's Markdown shows and the files beside it, in sentences."""
    paths = _shown(markdown, page)
    there = {figure_path(page, path.stem) for path in (folder / page).glob("*.svg")} if paths else set()
    again = "write the leaderboard again"
    lost = [f"{path}, which {page}.md shows, is not in {folder}; {again}" for path in sorted(paths - there)]
    return lost + [f"{path} is not shown on {page}.md; {again}" for path in sorted(there - paths)]


def _shown(markdown: str, page: str) -> set[str]:
    addresses = {unquote(address) for address in _SHOWN.findall(markdown)}
    return {path for path in addresses if path == figure_path(page, Path(path).stem)}
