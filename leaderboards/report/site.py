"""The report as a folder for any static host, also a static Space or a dataset of the Hugging Face Hub."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from layerboard.leaderboards.blocks.csv import csv_text, numbers_text
from layerboard.leaderboards.blocks.display import page_name
from layerboard.leaderboards.exchange.hub import site_card
from layerboard.leaderboards.report.content import Report
from layerboard.leaderboards.report.templates.environment import filled
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import printable

CARD = """\
---
{front}
---

# {title}

Which frozen vision backbone, and which of its layers, is best for which task: {what}. `index.html` needs
nothing but a browser; beside it are the numbers as CSV, which are also the configurations of a dataset.

`literature.html` has the numbers that others have published, with their sources.

Written by `layerboard report --site`.
"""

LINK = '<p><a href="literature.html">Numbers that others have published</a></p></footer>'


def write_site(
    pages: Mapping[str, str],
    reports: Sequence[Report],
    folder: Path,
    history: Mapping[str, str],
    beside: Mapping[str, str],
) -> list[Path]:
    """Write the page of each suite, by its name, and its numbers; other files in the folder stay.

    ``history`` are the pages of the `History` of a results repository, if it is one; ``beside`` are the files
    of the literature, to which every page of a suite links. The README is a card for the Hub.
    """
    names = {suite: page_name(suite) for suite in pages}
    single = len(pages) == 1 and not history
    linked = {suite: str(page).replace("</footer>", LINK, 1) for suite, page in pages.items()}
    texts = {"index.html" if single else f"{names[suite]}.html": page for suite, page in linked.items()}
    if not single:
        texts["index.html"] = str(filled("site", pages=names))
    tables = [numbers for report in reports for numbers in report.numbers]
    texts |= {f"{numbers.name}.csv": numbers_text(numbers) for numbers in tables}
    listed = ", ".join(names.values())
    texts |= {**history, **beside}
    title, what = (f"layerboard {listed}", "the suite") if single else ("layerboard", "suites")
    files = [f"{numbers.name}.csv" for numbers in tables] + [name for name in beside if name.endswith(".csv")]
    front = site_card(title, files)
    texts["README.md"] = CARD.format(front=front, title=title, what=f"{what} {listed}")
    for name, text in texts.items():
        write_whole(folder / name, printable(text))
    return [folder / name for name in sorted(texts)]
