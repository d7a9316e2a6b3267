"""The section on the provenance of numbers: data, backbones, versions and dates."""

from collections.abc import Iterable

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Bullets, Heading, Table, Text, said
from layerboard.leaderboards.blocks.csv import numbers_text, text_digest
from layerboard.leaderboards.blocks.display import task_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.tidy import numbers_of
from layerboard.leaderboards.records.files import RESULTS_VERSION
from layerboard.leaderboards.sections.gaps import empty_cells
from layerboard.tasks.framework.protocols import PROTOCOLS
from layerboard.zoo.errors import counted


def provenance_blocks(board: Board) -> list[Block]:
    """The last sections of the page of a board, or of a part of it: its provenance, and what is missing."""
    records, numbers = board.records if board.part else board.plain, numbers_of(board)
    words = "{run} The numbers as a table: [{file}]({file}), SHA-256 {digest}."
    file, digest, run = f"{numbers.name}.csv", text_digest(numbers_text(numbers)), run_sentence(records)
    blocks = [
        Heading(2, "Where the numbers come from"),
        said(words, run=run, file=file, digest=digest),
        numbers,
        Table(_datasets_table(records), left=6, caption="What was read of each dataset"),
        *unlike_blocks(records),
        Table(_backbones_table(board, records), left=6, caption="Which weights were run"),
    ]
    gaps = empty_cells(board)
    return blocks + ([Heading(2, "Empty cells"), Bullets(tuple(gaps))] if gaps else [])


def unlike_blocks(records: pd.DataFrame) -> list[Block]:
    """Differences of the protocols of some records from their sources; empty if there are none."""
    present = set(records["protocol"].astype(str))
    protocols = [protocol for protocol in PROTOCOLS if protocol.name in present]
    notes = [f"{protocol.name}: {note}" for protocol in protocols for note in protocol.unlike]
    return list_blocks("Where a protocol differs from its source:", notes)


def _datasets_table(records: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "dataset": f"{dataset} †" if rows["partial"].any() else dataset,
            "split": split,
            "protocol": protocol,
            "used by": ", ".join(sorted({str(task) for task in rows["task"]}, key=task_rank)),
            "complete": "PARTIAL" if rows["partial"].any() else "yes",
            "what was there": join(rows["coverage"]),
        }
        for (dataset, split, protocol), rows in records.groupby(["dataset", "split", "protocol"], sort=True)
    )


def _backbones_table(board: Board, records: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "backbone": backbone.label,
            "revision": join(str(revision)[:12] for revision in rows["revision"]),
            "blocks": "" if backbone.floor else str(backbone.depth),
            "input": join(f"{size} px" for size in rows["input_size"]),
            "dtype": join(rows["dtype"]),
            "device": join(rows["device"]),
        }
        for backbone in board.backbones
        if len(rows := records[records["backbone"] == backbone.name])
    )


def run_sentence(records: pd.DataFrame) -> str:
    """Versions of this package and days of the scoring; "" without records."""
    if records.empty:
        return ""
    days = sorted({str(date)[:10] for date in records["date"]})
    period = f"on {days[0]}" if len(days) == 1 else f"from {days[0]} to {days[-1]}"
    version = f"{join(records['version'])}, results version {RESULTS_VERSION},"
    return f"Scored with layerboard {version} {period} (UTC)."


def units_text(rows: pd.DataFrame) -> str:
    """The number of units behind some scores: ``, n = 400 images``; "" if unknown."""
    rows = rows[rows["value"].notna()]
    texts = []
    for unit, counts in rows.groupby("unit", sort=True)["n"]:
        low, high = int(counts.min()), int(counts.max())
        texts.append(counted(low, str(unit)) if low == high else f"{low:,} to {high:,} {unit}")
    return f", n = {' or '.join(texts)}" if texts else ""


def partial_line(rows: pd.DataFrame) -> Text:
    """The meaning of the mark beside one table; empty if its data are complete."""
    partial = rows[rows["partial"].astype(bool)]
    return said("† PARTIAL data: {what}", what=join(partial["coverage"])) if len(partial) else Text(())


def join(values: Iterable[object]) -> str:
    """Distinct values in order, separated by commas."""
    return ", ".join(sorted({str(value) for value in values} - {""}))


def list_blocks(words: str, lines: Iterable[str]) -> list[Block]:
    """A sentence and the lines that it introduces; empty without lines."""
    items = tuple(lines)
    return [said(words), Bullets(items)] if items else []
