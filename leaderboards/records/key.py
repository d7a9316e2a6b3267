"""When two records are the same number, and how far a number may move and still count as equal."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

COMPARISON_TASK = "cka"

ROUNDING = 6  # decimals to which differences of scores are compared with a tolerance


class RecordKey(NamedTuple):
    """What two records share if one replaces the other; for text tables, the same as text."""

    backbone: str
    task: str = ""
    dataset: str = ""
    protocol: str = ""
    data: str = ""
    metric: str = ""
    transform: str = ""
    layer: int = -1
    tap: str = ""
    pooling: str = ""
    head: int = -1
    other: str = ""
    other_layer: int = -1
    other_tap: str = ""


KEY = list(RecordKey._fields)
Row = dict[str, str]  # of a table, by column


def keys_of(records: pd.DataFrame) -> list[RecordKey]:
    """The key of each record of a frame; fields without a column are the same in all rows."""
    columns = [records[name].tolist() if name in records else [None] * len(records) for name in KEY]
    return [RecordKey._make(values) for values in zip(*columns, strict=True)]


def text_rows(table: pd.DataFrame) -> dict[RecordKey, Row]:
    """The rows of a table as text, each by its key."""
    return {
        key: {str(name): text for name, text in row.items()}
        for key, row in zip(keys_of(table), table.astype(str).to_dict("records"), strict=True)
    }


def layer_text(row: Row) -> str:
    """The layer of a row in short: ``9``, ``9 attention``, ``final``."""
    if row["tap"] in ("block", "final"):
        return row["layer"] if row["tap"] == "block" else "final"
    return f"{row['layer']} {row['tap']}"


@dataclass(frozen=True, slots=True)
class Limit:
    """How far the numbers of one task may move, in their unit or as a share of the larger one."""

    amount: float
    is_share: bool = False

    def __str__(self) -> str:
        return f"{100 * self.amount:g} %" if self.is_share else f"{self.amount:g}"

    def distance(self, before: float, now: float) -> float:
        """How far a number moved; infinite if only one of the two is a number, 0 if neither is."""
        if math.isnan(before) or math.isnan(now):
            return 0.0 if math.isnan(before) and math.isnan(now) else math.inf
        if self.is_share:
            return abs(before - now) / (max(abs(before), abs(now)) or 1.0)
        return round(abs(before - now), ROUNDING)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a number may move and still count as equal."""

    score: float = 0.5  # points
    cka: float = 0.02
    analysis: float = 0.02  # share of an analysis's number

    def limit(self, task: str, *, analysis: bool = False) -> Limit:
        if analysis:
            return Limit(self.analysis, is_share=True)
        return Limit(self.cka if task == COMPARISON_TASK else self.score)


TOLERANCE = Tolerance()
