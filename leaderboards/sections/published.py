"""The section on published numbers beside measured ones."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said, section
from layerboard.leaderboards.blocks.display import NOT_WORSE, fixed, narrow
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.reproduce import NOT_MEASURED, answered, reproduction

AGREES = """\
A published number agrees if it overlaps the 95 % interval of the measured one. Layers are in brackets; where
a source names no pooling, they are of the class token, or of the mean without one. The sources tell how the
published numbers were measured; what they leave open is measured in several ways, and the interval spans all
of these."""
NONE = "No given published number is for a backbone, task and dataset of this page."


def published_blocks(board: Board) -> list[Block]:
    """The section on published numbers; empty if none are given."""
    if not board.published:
        return []
    frame = answered(reproduction(board), board.published, board.plain)
    table = Table(published_table(frame), left=3, caption="Published and measured numbers")
    return [Heading(2, "Numbers of others"), *(section(said(AGREES), table) or [said(NONE)])]


def published_table(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of `leaderboards.reproduce.reproduce` as text for readers."""
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return pd.DataFrame(map(_cells, rows))


def _cells(row: Mapping[Hashable, Any]) -> dict[str, str]:
    protocol = "" if row["protocol"] == "none" else f" ({row['protocol']})"
    how_measured = row["conditions"] if row["verdict"] in NOT_MEASURED else ""
    measured, rule = row["measured"] is not None, row["rule"]
    interval = row["ci_low"] is not None and narrow(row["ci_low"], row["ci_high"])
    maybe = f"{row['maybe_layers']} {NOT_WORSE}" if row["maybe_layers"] else ""
    source = f"{row['source']}, {row['table']}".removesuffix(", ")
    span = row["lowest"] is not None
    ends = f"; {fixed(row['lowest'], 2)} to {fixed(row['highest'], 2)} by open settings" if span else ""
    published = fixed(row["published"], row["decimals"]) + _layer(row["published_layer"], rule, row["index"])
    ours = fixed(row["measured"], 2) + _layer(row["measured_layer"], rule, maybe) + ends if measured else ""
    return {
        "backbone": row["backbone"],
        "score": f"{row['task']} {row['metric']}, {row['dataset']}{protocol}",
        "source": f"{source}{' (second hand)' if row['second_hand'] else ''}",
        "published": published,
        "measured": ours,
        "95 % interval": f"{fixed(row['ci_low'], 2)} to {fixed(row['ci_high'], 2)}" if interval else "",
        "difference": f"{row['difference']:+.2f}" if measured else "",
        "verdict": row["verdict"],
        "reason": row["reason"] + (f"; how it was measured: {how_measured}" if how_measured else ""),
    }


def _layer(layer: int | None, rule: str, said: str = "") -> str:
    """The layer of a score in brackets, or its rule if that names one, and what is said of it."""
    name = "final" if rule == "final" else layer
    return "" if name is None else f" ({name}{f': {said}' if said else ''})"
