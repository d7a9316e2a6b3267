"""Results of public functions: a table that displays itself, with the numbers behind it."""

import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from layerboard.zoo.errors import InputError, counted, require_known

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.leaderboards.charts.engine import Chart

SCREEN = 100  # characters of the widest line of an answer
MOST_ROWS = 40  # rows that a displayed result shows; ``frame`` has all


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Result:
    """A table with notes, shown as text in a terminal and as an HTML table in a notebook.

    The ``title`` is followed by ``table``, whose cells are texts, or by ``frame``, with all numbers, if
    ``table`` is None; then by ``notes``, one sentence each: how to read it, and what is missing. ``parts``
    are further tables below. ``draw`` gives its charts, the usual one first. As text, it is at most ``width``
    characters wide, and no wider than the terminal. Its command prints this text, or ``lines``, or
    ``content`` as JSON, and ends with the exit ``status``.
    """

    title: str
    frame: "pd.DataFrame"
    table: "pd.DataFrame | None" = None
    notes: tuple[str, ...] = ()
    parts: tuple["Result", ...] = ()
    draw: "Callable[[], Iterable[Chart]]" = tuple
    width: int = sys.maxsize
    lines: tuple[str, ...] | None = None
    content: object = None
    status: int = 0

    def __repr__(self) -> str:
        return self.text(MOST_ROWS)

    @property
    def charts(self) -> tuple[str, ...]:
        """The names of its charts, the usual one first; empty if it has none."""
        return tuple(chart.name for chart in self.draw())

    def plot(self, chart: str = "") -> "Chart":
        """One of its `charts` by name, or the usual one: that of the report, with its numbers.

        A notebook shows it, and ``save`` writes it to a file. Raises InputError if it has no such chart.
        """
        names = []
        for drawn in self.draw():
            if chart in ("", drawn.name):
                return drawn
            names.append(drawn.name)
        if names:
            require_known("chart", [chart], names)
        raise InputError(f"{self.title}: it has no chart; run, best, compare, recommend and cka have some")

    def text(self, most: int | None = None) -> str:
        """Title, table and notes, with all rows or the first ``most``."""
        from tabulate import tabulate

        rows, rest = self._shown(most)
        width = min(self.width, screen())
        if self.table is None:
            text = tabulate(rows.to_dict("list"), headers="keys", tablefmt="simple", floatfmt=".4g")
        else:
            text = table_text(rows, width)
        notes = (wrap_text(note, width) for note in (*rest, *self.notes))
        whole = "\n".join(
            [wrap_text(self.title, width), *(("", text, "") if len(rows) else ()), *notes]
        ).rstrip()
        return "\n\n".join([whole, *(part.text(most) for part in self.parts)])

    def _repr_html_(self) -> str:
        rows, rest = self._shown(MOST_ROWS)
        table = rows.to_html(index=False, border=0, escape=True, float_format="{:.4g}".format, na_rep="")
        notes = "".join(f"<p>{escape(note)}</p>" for note in [*rest, *self.notes])
        parts = "".join(part._repr_html_() for part in self.parts)
        return f"<div><p><b>{escape(self.title)}</b></p>{table if len(rows) else ''}{notes}{parts}</div>"

    def _shown(self, most: int | None) -> "tuple[pd.DataFrame, list[str]]":
        table = self.frame if self.table is None else self.table
        more = len(table[most:]) if most else 0
        return table[:most], [f"{more} more rows: see frame."] if more else []


def table_text(table: "pd.DataFrame", width: int = 0) -> str:
    """A table of texts for a terminal, laid out by `rows_text`."""
    return rows_text([*map(str, table)], table.itertuples(index=False, name=None), width)


def rows_text(head: Sequence[str], rows: Iterable[Iterable[object]], width: int = 0) -> str:
    """A table of at most ``width`` characters, for 0 as wide as the terminal.

    If it is too wide, its widest columns are wrapped between words.

    If it is still too wide, the remaining columns follow below, beside the first column again. A number and
    its margin of error are never separated.
    """
    width = width or screen()
    cells = [[f"{title}  " for title in head], *([*map(str, row)] for row in rows)]
    columns = [[_UNBROKEN.sub("\xa0\\1\xa0", text) for text in column] for column in zip(*cells, strict=True)]
    if sum(max(map(len, column)) + 2 for column in columns) > width + 2:
        columns = [[text.rstrip() for text in column] for column in columns]
    if not columns:
        return ""
    least = [max(len(word) for text in column for word in text.split(" ")) for column in columns]
    parts = [[0]]
    for number in range(1, len(columns)):
        if len(parts[-1]) > 1 and sum(least[each] + 2 for each in (*parts[-1], number)) > width + 2:
            parts.append([0])
        parts[-1].append(number)
    drawn = [
        _drawn([columns[each] for each in part], [least[each] for each in part], width) for part in parts
    ]
    return "\n\n".join(drawn).replace("\xa0", " ")


_UNBROKEN = re.compile(r"(?<=\d) (±|to) (?=[-\d])")


def _drawn(columns: Sequence[Sequence[str]], least: Sequence[int], most: int) -> str:
    """Columns as a table of at most so many characters if their minimum widths allow it."""
    widths = [max(map(len, column)) for column in columns]
    while sum(widths) + 2 * len(widths) - 2 > most and widths != least:
        spare = [width - limit for width, limit in zip(widths, least, strict=True)]
        widths[spare.index(max(spare))] -= 1
    lines = []
    for row in zip(*columns, strict=True):
        texts = [wrap_text(text, width).split("\n") for text, width in zip(row, widths, strict=True)]
        broken = zip_longest(*texts, fillvalue="")
        lines.append("\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in broken))
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def screen() -> int:
    """Width of the terminal in characters; unlimited without a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def wrap_text(text: str, width: int = 0) -> str:
    """A text wrapped between words to ``width`` characters, or to the width of the terminal for 0."""
    width = width or screen()
    return text if len(text) <= width else fill(text, width, break_long_words=False, break_on_hyphens=False)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Files(Result):
    """Written files, and what went wrong, one sentence each; everything else was written."""

    paths: tuple[Path, ...] = ()
    failures: tuple[str, ...] = ()


MOST_SHOWN = 16 * 2**20  # bytes of a page that a notebook takes in
# A page of its own, which sees nothing of the notebook and needs no network.
FRAME = """<iframe sandbox="allow-scripts allow-downloads allow-popups" title="{title}" srcdoc="{page}"
style="width: 100%; height: 720px; border: 0; background: white"></iframe>"""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class PageFiles(Files):
    """Written files, the first of which is an HTML page: a notebook shows it with all that it can do."""

    def _repr_html_(self) -> str:
        listed, page = super()._repr_html_(), self.paths[0]
        try:
            if (size := page.stat().st_size) > MOST_SHOWN:
                large = f"{page} has {size / 2**20:.0f} MB, too many for a notebook: open it in a browser."
                return f"{listed}<p>{escape(large)}</p>"
            content = page.read_text(encoding="utf-8")
        except OSError:  # it was removed
            return listed
        return listed + FRAME.format(title=escape(str(page)), page=escape(content))


def files_result(paths: Sequence[Path], purpose: str) -> Files:
    """The result of a function that writes files; its frame lists them."""
    import pandas as pd

    lines = tuple(map(str, paths))
    title, frame = f"{counted(len(paths), 'files')} {purpose}", pd.DataFrame({"path": lines})
    return Files(title=title, frame=frame, paths=tuple(paths), lines=lines)


def page_files(paths: Sequence[Path]) -> PageFiles:
    """The result of a function that writes a page, and perhaps further files."""
    return PageFiles(**vars(files_result(paths, "to look at")))
