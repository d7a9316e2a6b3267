"""The page of the literature: every published number by groups, to sort and search, as one offline file."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.blocks.display import fixed, pooling_name, task_display
from layerboard.leaderboards.findings import literature
from layerboard.leaderboards.published.literature import Published
from layerboard.leaderboards.report.packing import packed
from layerboard.leaderboards.report.table import sorted_cell, sorted_heads
from layerboard.leaderboards.report.templates.environment import offline_page

NAME = "literature"  # of its files, without an ending

HEADS = {"backbone": "words", "task": "words", "score": "numbers", "layer": "words", "vectors": "words"}
HEADS |= {"rank": "numbers", "group": "words", "source": "words"}
"""Columns of the table of numbers, and how each is sorted."""

_Row = Mapping[Hashable, Any]


def literature_files(
    published: Sequence[Published], depths: Mapping[str, int], records: pd.DataFrame | None = None
) -> dict[str, str]:
    """The page and the CSV of the literature by file name.

    ``depths`` are the numbers of blocks of the registry's backbones. ``records`` are those of a run: what is
    published of its tasks and datasets comes first, and an earlier layer of it may be better than a published
    last one.
    """
    frame = literature.literature(published, depths)
    run = set() if records is None else {*zip(records["task"], records["dataset"], strict=True)}
    others = [each not in run for each in zip(frame["task"], frame["dataset"], strict=True)]
    frame = frame.iloc[np.argsort(others, kind="stable")]
    text = csv_text(frame)
    page = offline_page(
        *(NAME, "table", ["report"]),
        images=False,
        data=packed(text),
        frame=frame,
        run=not all(others),
        heads=sorted_heads(HEADS, {}),
        rows=[*map(_row, frame.to_dict("records"))],
        groups=[*_groups(frame)],
        last=[*map(_last, literature.last_layer_only(published, depths, records).to_dict("records"))],
        least=literature.LEAST_GAIN,
    )
    return {f"{NAME}.html": page, f"{NAME}.csv": text}


def _row(row: _Row) -> dict[str, Any]:
    """A number as a row of the table; the row is also found by the words of its task and publication."""
    unit, group = "lower is better" if row["better"] == "lower" else "", row["group"]
    link = Markup('<a href="#{}">{}</a>').format(group.replace(" ", "-"), group)
    layer: str = "" if pd.isna(row["layer"]) else f"{row['layer']:04d}"
    rank: object = "" if pd.isna(row["rank"]) else row["rank"]
    cells = [
        sorted_cell(row["backbone"], "" if row["registered"] else "not in the registry"),
        sorted_cell(row["task"], f"{row['dataset']} {row['metric']}"),
        sorted_cell(literature.printed_value(row), unit, left=False, key=row["value"]),
        sorted_cell(literature.printed_layer(row), key=layer),
        sorted_cell(row["pooling"] and pooling_name(row["pooling"])),
        sorted_cell(literature.printed_rank(row), left=False, key=rank),
        sorted_cell(link, key=group),
        sorted_cell(row["source"], literature.source_text(row).removeprefix(f"{row['source']}, ")),
    ]
    words = (task_display(row["task"]).title, row["publication"])
    return {"cells": cells, "attributes": {"data-find": " ".join(words)}}


def _groups(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Each group as a row: what it is of, how it was measured, and whether a run can be compared with it."""
    for name, rows in frame.groupby("group", sort=False):
        first = rows.iloc[0]
        reasons = "; ".join(filter(None, dict.fromkeys(rows["not_comparable"])))
        cells = [
            str(name),
            f"{first['task']} {first['metric']}, {first['dataset']}",
            first["measured"],
            f"{first['networks']}" if first["networks"] > 1 else "1, nothing to rank",
            ", ".join(dict.fromkeys(rows["source"])),
            f"no: {reasons}" if reasons else f"yes, with the protocol {first['protocol']}",
        ]
        yield {"cells": cells, "attributes": {"id": str(name).replace(" ", "-")}}


def _last(row: _Row) -> list[str]:
    depth: str = "" if pd.isna(row["depth"]) else f" of {row['depth']}"
    gain: str = "not printed" if pd.isna(row["gain"]) else f"{fixed(row['gain'], 1)} {row['unit']}"
    subject = f"{row['task']} {row['metric']}, {row['dataset']}"
    return [row["backbone"], subject, row["published"], f"{row['layer']}{depth}", gain, row["better_by"]]
