"""The report as a folder for any static host, including a Hugging Face Space of sdk ``static``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.blocks.display import page_name
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import printable

CARD = """\
---
title: {title}
emoji: 📏
colorFrom: blue
colorTo: gray
sdk: static
app_file: index.html
pinned: false
---

# {title}

Which frozen vision backbone, and which of its layers, is best for which task: {what}. `index.html` needs
nothing but a browser; beside it are the numbers as CSV.

Written by `layerboard report --site`.
"""


def write_site(
    pages: Mapping[str, str], reports: Sequence[Report], folder: Path, history: Mapping[str, str]
) -> list[Path]:
    """Write the page of each suite, by its name, and its numbers; other files in the folder stay.

    ``history`` are the `history_pages` of a results repository, if it is one.
    """
    names = {suite: page_name(suite) for suite in pages}
    single = len(pages) == 1 and not history
    texts = {"index.html" if single else f"{names[suite]}.html": page for suite, page in pages.items()}
    if not single:
        texts["index.html"] = str(filled("site", pages=names))
    tables = [numbers for report in reports for numbers in report.numbers]
    texts |= {f"{numbers.name}.csv": csv_text(numbers.frame) for numbers in tables}
    listed = ", ".join(names.values())
    texts |= history
    title, what = (f"layerboard {listed}", "the suite") if single else ("layerboard", "suites")
    texts["README.md"] = CARD.format(title=title, what=f"{what} {listed}")
    for name, text in texts.items():
        write_whole(folder / name, printable(text))
    return [folder / name for name in sorted(texts)]
