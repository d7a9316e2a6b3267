"""Small pieces of Markdown."""

import pandas as pd
from tabulate import tabulate


def table(frame: pd.DataFrame, left: int = 1) -> str:
    """A data frame of text as a Markdown table whose first columns are aligned left, others right."""
    alignment = ["left" if place < left else "right" for place in range(len(frame.columns))]
    return tabulate(
        [[plain(str(cell)) for cell in row] for row in frame.itertuples(index=False, name=None)],
        headers=[plain(str(column)) for column in frame.columns],
        tablefmt="pipe",
        colalign=alignment if len(frame) else None,
        disable_numparse=True,
    )


def plain(text: str) -> str:
    """Text on one line that cannot break a table or start a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def bullets(sentences: list[str]) -> str:
    """A list."""
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


def paragraph(*sentences: str) -> str:
    """One paragraph of the sentences that are there."""
    return " ".join(sentence for sentence in sentences if sentence)
