"""Pages and tables as a reader of Markdown sees them."""

from pathlib import Path

import pandas as pd

from leaderboards.pages.markdown import cell_text, markdown_page
from leaderboards.pages.page import leaderboard_page


def render_page(records: pd.DataFrame, suite: str, items: Path | None = None) -> str:
    """The leaderboard of a suite as Markdown."""
    return markdown_page(leaderboard_page(records, suite, items))


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """A table whose cells are text, with their marks."""
    return table.map(cell_text)
