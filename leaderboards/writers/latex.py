"""Tables of cells as LaTeX for papers: booktabs, no wider than the page, marked as on the leaderboard."""

import re
from collections.abc import Sequence

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Cell

_SPECIAL = {letter: rf"\{letter}" for letter in "{}$&#%_"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
    "†": r"\dag{}",
}
_ANY = re.compile("|".join(map(re.escape, _SPECIAL)))
_MINUS = re.compile(r"(?<![\w.)-])-(?=\d)")  # not the hyphen of a name or a range

MAYBE = r"$^{\approx}$"


def escaped(text: str) -> str:
    """Text on one line that LaTeX prints literally; non-ASCII letters need UTF-8, today's default."""
    return _MINUS.sub("$-$", _ANY.sub(lambda found: _SPECIAL[found[0]], " ".join(text.split())))


def latex_cell(cell: Cell | str) -> str:
    """A cell with its mark."""
    if not isinstance(cell, Cell):
        return escaped(str(cell))
    text = escaped(cell.words)
    return {"best": rf"\textbf{{{text}}}", "maybe": f"{text}{MAYBE}", "none": text}[cell.mark]


def latex_table(frame: pd.DataFrame, left: int, caption: Sequence[str], label: str) -> str:
    r"""A table float of text and `Cell` with label ``\ref{tab:label}``; the first columns aligned left."""
    columns = "".join("l" if position < left else "r" for position in range(len(frame.columns)))
    rows = [" & ".join(map(latex_cell, row)) + r" \\" for row in frame.itertuples(index=False, name=None)]
    lines = [
        "% needs \\usepackage{adjustbox,booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{' '.join(filter(None, caption))}}}",
        rf"\label{{tab:{re.sub(r'[^A-Za-z0-9:-]+', '-', label)}}}",
        r"\begin{adjustbox}{max width=\linewidth}",  # many tasks are wider than a page
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(escaped(str(column)) for column in frame.columns) + r" \\",
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"
