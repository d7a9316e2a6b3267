"""The section on the images themselves: the audit in the output folder, with thumbnails."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.csv import read_csv_table, sums_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.thumbnails import FOLDER
from layerboard.leaderboards.report.gallery.drawing import HEIGHT, SharedPictures
from layerboard.leaderboards.report.templates.environment import PageSection, filled
from layerboard.tasks.audit.finding import Finding
from layerboard.zoo.errors import InputError, first_line, shortened

TABLE = "audit.csv"  # in the output folder: one row per finding, after notes of the kind `NOTE`
SUMS = "audit-SHA256SUMS"  # its digest, for `sha256sum --check`
NOTE = "note"
COLUMNS = ("dataset", *Finding._fields, "picture", "other_picture", NOTE)
NUMBERS = ("score", "cosine", "vote")  # columns; the others are texts
PICTURED = 40  # findings of a kind that are shown with pictures, the surest


class Kind(NamedTuple):
    """How the findings of a kind are shown."""

    title: str
    heads: Mapping[str, str]  # of the columns that are shown

    def filled(self, rows: pd.DataFrame) -> list[str]:
        """The non-empty columns among those that are shown."""
        return [column for column in self.heads if (rows[column].fillna("") != "").any()]


KINDS = {
    "duplicate": Kind(
        "Duplicates",
        {
            "file": "image",
            "other": "is like",
            "label": "class",
            "other_label": "class of that",
            "split": "splits",
            "cosine": "cosine",
        },
    ),
    "label": Kind(
        "Labels that neighbours contradict",
        {
            "file": "image",
            "label": "label",
            "other_label": "neighbours say",
            "other": "nearest of these",
            "score": "probability",
            "vote": "votes",
            "agreeing": "backbones",
        },
    ),
    "series": Kind(
        "Series", {"file": "first image", "other": "last image", "label": "class", "score": "images"}
    ),
}


def audit_sections(board: Board, output: Path) -> list[PageSection]:
    """The audit of the images of a board; nothing if none of them was audited."""
    frame = read_audit(output)
    if is_changed(output):
        said = f"{TABLE} was changed after `layerboard check` wrote it, and is not shown; run that again."
        frame = frame[:0] if frame.empty else frame[:1].assign(finding=NOTE, note=said)
    frame = frame[frame["dataset"].isin(board.records["dataset"])]
    if frame.empty:
        return []
    pictures = SharedPictures("audit")
    kinds = [
        {
            "title": f"{kind.title}: {len(rows):,}",
            "heads": [kind.heads[column] for column in kind.filled(rows)],
            "rows": [*_rows(rows.head(PICTURED), kind.filled(rows), pictures, output / FOLDER)],
            "more": max(len(rows) - PICTURED, 0),
        }
        for name, kind in KINDS.items()
        if len(rows := frame[frame["finding"] == name])
    ]
    notes = frame.loc[frame["finding"] == NOTE, "note"].tolist()
    html = filled("audit", pictures=pictures.addresses, notes=notes, kinds=kinds)
    return [PageSection("audit", "the images", "The images themselves: copies, labels, series", html)]


def read_audit(output: Path) -> pd.DataFrame:
    """The table of an audit as text, columns `COLUMNS`; no rows if there is none.

    Raises InputError for a table of another kind, or with findings or numbers that no audit writes.
    """
    path = output / TABLE
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS, dtype=str)
    try:
        frame = read_csv_table(path)
        if tuple(frame.columns) != COLUMNS:
            raise ValueError(f"expected the columns {', '.join(COLUMNS)}")
        if unknown := {*frame["finding"]} - {*KINDS, NOTE}:
            raise ValueError(f"there is no finding {shortened(min(unknown))}")
        numbers = frame[[*NUMBERS]].replace("", "nan").astype(float)
        if np.isinf(numbers).any(axis=None):
            raise ValueError("a number is infinite")
    except (OSError, ValueError) as error:
        again = "delete it, or write it again by `layerboard check --features`"
        raise InputError(f"cannot read the audit {path}: {first_line(error)}; {again}") from error
    return frame


def is_changed(output: Path) -> bool:
    """Whether the table of an audit is another than the digest that was written beside it says."""
    try:
        return (output / SUMS).read_text() != sums_text({TABLE: (output / TABLE).read_text(encoding="utf-8")})
    except (OSError, ValueError):
        return (output / TABLE).is_file()


def _rows(
    frame: pd.DataFrame, columns: Sequence[str], pictures: SharedPictures, folder: Path
) -> Iterator[tuple[str | Markup, ...]]:
    for row in frame.to_dict("records"):
        cells: list[str | Markup] = []
        for column in columns:
            shown = {"file": "picture", "other": "other_picture"}.get(column)
            label = str(row[column])
            if shown and row[shown]:
                size = pictures.at(folder / Path(row[shown]).name)
                picture = filled("thumbnail", size=size, label=label, over="", height=HEIGHT)
                cells.append(filled("judged", text=label, right=None, picture=picture))
            else:
                cells.append(label)
        yield tuple(cells)
