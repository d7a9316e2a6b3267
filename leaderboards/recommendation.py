"""A recommendation in words, as tables and for machines."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from leaderboards.choices.picks import Pick
from leaderboards.choices.possible import Possible
from leaderboards.choices.selection import Column
from leaderboards.display import count_text, ms_text, score_text

PICK = [
    *("rank", "backbone", "layer", "depth", "pooling", "task", "dataset", "protocol", "metric"),
    *("score", "half", "ms", "parameters", "gflops", "dim", "bytes", "licence", "loss", "other_layers"),
    "reason",
]
PARETO = [
    *("task", "dataset", "protocol", "metric", "backbone", "layer", "depth", "pooling"),
    *("score", "half", "ms", "parameters", "dim", "may_be_best"),
]


@dataclass(frozen=True)
class Recommendation:
    """What to use.

    Attributes:
        picks: Backbones with layers, the cheapest first. Where none may be the best in every column, the one
            that loses least.
        possible: For each column, all layers that may be the best.
        fronts: For each column, the layers above which none scores that takes no longer; empty without times.
        device: Where times were measured; "" where none were.
        notes: What a reader must know, one sentence each.
        code: For each pick, lines of Python that give its vectors.
    """

    picks: tuple[Pick, ...]
    possible: Mapping[Column, Possible]
    fronts: Mapping[Column, pd.DataFrame]
    device: str
    notes: tuple[str, ...]
    code: tuple[str, ...]

    @property
    def frame(self) -> pd.DataFrame:
        """One row a pick and column, columns `PICK`."""
        rows = [
            _pick_row(rank, pick, column, row, self.reason(pick))
            for rank, pick in enumerate(self.picks, start=1)
            for column, row in pick.rows.items()
        ]
        return pd.DataFrame(rows, columns=PICK)

    @property
    def pareto(self) -> pd.DataFrame:
        """The fronts of all columns, columns `PARETO`."""
        rows = [
            {
                **_place(column, row),
                **{name: _number(row[name]) for name in ("half", "ms", "parameters", "dim")},
                "may_be_best": (row["backbone"], row["layer"]) in _layers(self.possible[column]),
            }
            for column, front in self.fronts.items()
            for _, row in front.iterrows()
        ]
        return pd.DataFrame(rows, columns=PARETO)

    def reason(self, pick: Pick) -> str:
        """Why a pick is one, in a sentence without its end."""
        if pick.loss:
            return (
                f"no backbone may be the best in every task; it loses least: at most {pick.loss:.1f} points "
                "below the best"
            )
        parts = [self._compared(pick, column) for column in pick.rows]
        texts = [
            f"{column.heading}: {part}" if len(parts) > 1 else part
            for column, part in zip(pick.rows, parts, strict=True)
        ]
        if len(pick.layers) > 1:
            layers = " and ".join(map(str, pick.layers))
            texts.append(f"no one of its layers will do for all, take layers {layers}")
        return "; ".join(texts)

    def _compared(self, pick: Pick, column: Column) -> str:
        """A pick beside the best of a column."""
        best, row = self.possible[column].best, pick.rows[column]
        if (best["backbone"], best["layer"]) == (row["backbone"], row["layer"]):
            return f"scores best, {_score(best)}"
        told = f"cannot be told from {best['backbone']} layer {best['layer']} ({_score(best)})"
        return ", ".join([told, *_saving(row, best)])


def _saving(row: pd.Series, best: pd.Series) -> list[str]:
    """What one candidate costs instead of another: time, or where it is not known, weights."""
    if not (math.isnan(row["ms"]) or math.isnan(best["ms"])):
        than = "instead of" if row["ms"] < best["ms"] else "against"
        return [f"takes {ms_text(row['ms'])} ms {than} {ms_text(best['ms'])}"]
    if not (math.isnan(row["parameters"]) or math.isnan(best["parameters"])):
        sizes = [f"{count_text(one['parameters'])} weights" for one in (row, best)]
        if sizes[0] != sizes[1]:
            return [f"has {sizes[0]} instead of {sizes[1].removesuffix(' weights')}"]
    if row["backbone"] == best["backbone"]:
        return [f"ends at layer {row['layer']} instead of {best['layer']}"]
    return [f"ends at layer {row['layer']} of {row['depth']}"]


def pick_table(found: Recommendation) -> pd.DataFrame:
    """The picks as text, with all layers that would do as well."""
    return pd.DataFrame([_cells(pick) for pick in found.picks])


def pareto_table(found: Recommendation, column: Column) -> pd.DataFrame:
    """The front of one column as text; ``≈`` marks what may be the best."""
    may = _layers(found.possible[column])
    return pd.DataFrame(
        {
            "backbone": row["backbone"],
            "layer": f"{row['layer']}/{row['depth']}",
            column.heading: _score(row) + (" ≈" if (row["backbone"], row["layer"]) in may else ""),
            "ms": ms_text(row["ms"]),
            "weights": count_text(row["parameters"]),
        }
        for _, row in found.fronts[column].iterrows()
    )


def _cells(pick: Pick) -> dict[str, str]:
    row = pick.deepest
    scores = {column.heading: _score(one) for column, one in pick.rows.items()}
    layers = ", ".join(map(str, pick.layers))
    return {
        "backbone": pick.backbone,
        "layer": f"{layers}/{row['depth']}",
        "pooling": ", ".join(dict.fromkeys(str(one["pooling"]) for one in pick.rows.values())),
        **scores,
        "ms": ms_text(row["ms"]),
        "weights": count_text(row["parameters"]),
        "dim": "" if math.isnan(row["dim"]) else f"{row['dim']:.0f}",
        "GB a million": "" if math.isnan(row["dim"]) else f"{4 * row['dim'] / 1000:.2f}",
        "licence": str(row["licence"]),
        "as good": ", ".join(map(str, pick.others)),
    }


def _pick_row(rank: int, pick: Pick, column: Column, row: pd.Series, reason: str) -> dict[str, object]:
    return {
        "rank": rank,
        **_place(column, row),
        **{name: _number(row[name]) for name in ("half", "ms", "parameters", "gflops", "dim")},
        "bytes": _number(4 * row["dim"]),
        "licence": row["licence"],
        "loss": pick.loss,
        "other_layers": list(pick.others),
        "reason": reason,
    }


def _place(column: Column, row: pd.Series) -> dict[str, object]:
    """Which layer of which backbone in which column, and its score."""
    return {
        "backbone": row["backbone"],
        "layer": int(row["layer"]),
        "depth": int(row["depth"]),
        "pooling": row["pooling"],
        "task": column.task,
        "dataset": column.dataset,
        "protocol": column.protocol,
        "metric": column.metric,
        "score": float(row["value"]),
    }


def _layers(possible: Possible) -> set[tuple[str, int]]:
    return set(zip(possible.rows["backbone"], possible.rows["layer"], strict=True))


def _number(value: float) -> float:
    return float(value)


def _score(row: pd.Series) -> str:
    return score_text(float(row["value"]), float(row["half"]))
