"""What the functions of ``benchmark`` give: a table that shows itself, with the numbers behind it."""

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 40
"""Rows that a result shows of itself; ``frame`` has all."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """A table with what it says: shown as text in a terminal and as a table in a notebook.

    Attributes:
        title: What it is, in a line.
        frame: All numbers, as a data frame.
        table: What is shown of them, as a data frame of texts; the frame itself if None.
        notes: How to read it, and what is missing; a sentence each.
    """

    title: str
    frame: "pd.DataFrame"
    table: "pd.DataFrame | None" = None
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        from tabulate import tabulate

        shown = self._shown()
        rows = shown.head(MOST_ROWS)
        words = self.table is not None
        text = tabulate(
            rows.to_dict("list"), headers="keys", tablefmt="simple", floatfmt=".4g", disable_numparse=words
        )
        return "\n".join([self.title, "", text, "", *self._rest(), *self.notes]).rstrip()

    def _repr_html_(self) -> str:
        shown = self._shown().head(MOST_ROWS)
        table = shown.to_html(index=False, border=0, escape=True, float_format="{:.4g}".format, na_rep="")
        notes = "".join(f"<p>{escape(note)}</p>" for note in [*self._rest(), *self.notes])
        return f"<div><p><b>{escape(self.title)}</b></p>{table}{notes}</div>"

    def _shown(self) -> "pd.DataFrame":
        return self.frame if self.table is None else self.table

    def _rest(self) -> list[str]:
        """That there are more rows than shown."""
        more = len(self._shown()) - MOST_ROWS
        return [f"{more} more rows: see frame."] if more > 0 else []


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RunResult(Result):
    """What came of a run; it shows the answer to each task, its frame has every number.

    Attributes:
        best: The answers, as `benchmark.best` gives them.
        failures: What went wrong, a sentence each; the rest is done and kept.
        pages: The pages that were written.
    """

    best: "pd.DataFrame"
    failures: tuple[str, ...] = ()
    pages: tuple[Path, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison(Result):
    """Two backbones, paired.

    Attributes:
        conclusion: What the numbers show, in words.
        left_out: What could not be compared, and why.
    """

    conclusion: str
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Advice(Result):
    """What to use: backbones with layers, the cheapest first.

    Attributes:
        pareto: For each task the layers above which none scores that takes no longer.
        code: For each recommendation, lines of Python that give its vectors.
    """

    pareto: "pd.DataFrame"
    code: tuple[str, ...]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Similarity(Result):
    """CKA of two representations, or of all layers of two backbones.

    Attributes:
        matrix: CKA from 0 to 1, a row for each layer of the first, a column for each of the second.
    """

    matrix: "pd.DataFrame"

    def __float__(self) -> float:
        if self.matrix.size != 1:
            raise TypeError(f"this is CKA of {self.matrix.size} pairs of layers, not a number; see matrix")
        return float(self.matrix.to_numpy(dtype=float)[0, 0])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Files(Result):
    """Files that were written.

    Attributes:
        paths: The files.
        failures: What went wrong, a sentence each; the rest is there.
    """

    paths: tuple[Path, ...] = ()
    failures: tuple[str, ...] = ()
