"""Recommendations: the cheapest backbones and layers that are shown to lose little in every column."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.display import count_text, fixed, ms_text, place_text, score_text
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import UP_TO
from layerboard.leaderboards.board.differences import differences_of, sides_of
from layerboard.leaderboards.board.frames import INTERVAL

PICK = [
    *("rank", "backbone", "layer", "depth", "pooling", "task", "dataset", "protocol", "metric"),
    *("score", "ci_low", "ci_high", "difference", "loss", "ms", "parameters", "gflops", "dim", "bytes"),
    *("licence", "compression", "thresholds", "other_layers", "reason"),
]

COMPROMISE = (
    "no backbone is shown to lose at most {lost} points in every task; this one loses least by its scores"
)
COSTS = ("ms", "parameters")  # costs to sort picks by, if known for all of them


@dataclass(frozen=True, slots=True)
class Compared:
    """Candidates of one column compared with the best, which comes first.

    ``difference`` is a candidate's score minus the best one, in points. ``loss`` is its maximum loss: minus
    the lower end of the paired 95 % interval of that difference (`unseen_loss` if no item differs); NaN if it
    loses more than allowed already, or if the difference has no interval.
    """

    rows: pd.DataFrame
    may_lose: float  # points

    @property
    def best(self) -> pd.Series:
        return self.rows.iloc[0]

    @property
    def near(self) -> pd.DataFrame:
        """Candidates that score no more than ``may_lose`` below the best."""
        return self.rows[self.rows["difference"] >= -self.may_lose]

    @property
    def safe(self) -> pd.DataFrame:
        """Candidates that are shown to lose no more than that."""
        return self.near[self.near["loss"] <= self.may_lose]

    def undecided(self, pick: pd.Series) -> pd.DataFrame:
        """Cheaper candidates than a pick that are not safe, by the items that would suffice (``needed``)."""
        rows = self.near[(self.near["loss"] > self.may_lose) & (self.near["difference"] > -self.may_lose)]
        cost = next(name for name in (*COSTS, "layer") if not pd.isna([*rows[name], pick[name]]).any())
        reach, room = rows["difference"] + rows["loss"], rows["difference"] + self.may_lose
        # errors shrink with the square root of the items, the bound on unseen differences with their number
        unseen = rows["loss"] == rows["n"].map(unseen_loss)
        needed = rows["n"] * (reach / room) ** np.where(unseen, 1, 2)
        cheaper: pd.DataFrame = rows.assign(needed=needed)[rows[cost] < pick[cost]]
        return cheaper.sort_values("needed", kind="stable")


def unseen_loss(items: int) -> float:
    """Maximum loss in points, with 97.5 % confidence, if no item differs: the bound of a share of none.

    Clopper and Pearson, 1934; the lower end of a 95 % interval has the same level.
    """
    return float(100 * (1 - 0.025 ** (1 / items)))


def compare_candidates(rows: pd.DataFrame, column: Column, items: Path, may_lose: float) -> Compared:
    """The candidates of a column, at least one, each compared with the best if it may be close enough."""
    order = ["value", "layer", "backbone"]
    rows = rows.sort_values(order, ascending=[False, True, True], kind="stable").reset_index(drop=True)
    top = rows.iloc[0]
    (best,) = sides_of(rows[:1], top["backbone"], top["transform"])
    rows = rows.assign(difference=rows["value"] - top["value"], loss=math.nan)
    near = rows[rows["difference"] >= -may_lose]
    for (name, transform), part in near.groupby(["backbone", "transform"], sort=True):
        part = part.sort_values("layer", kind="stable")
        differences = differences_of(column, sides_of(part, str(name), str(transform)), best, items)
        rows.loc[part.index, "difference"] = [each.value for each in differences]
        seen = [each.low < each.high or math.isnan(each.low) for each in differences]
        losses = zip(differences, seen, part["n"], strict=True)
        rows.loc[part.index, "loss"] = [-each.low if varies else unseen_loss(n) for each, varies, n in losses]
    rows.loc[0, ["difference", "loss"]] = 0.0
    return Compared(rows.assign(loss=rows["loss"].clip(lower=0)), may_lose)


@dataclass(frozen=True, slots=True)
class Pick:
    """A backbone and its layer in each column: the same layer for all columns if one suffices."""

    backbone: str
    rows: Mapping[Column, pd.Series]
    others: tuple[int, ...] = ()  # further blocks that are shown to lose no more in any column
    compromise: bool = False  # whether no backbone is shown to lose so little in every column

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted({int(row["layer"]) for row in self.rows.values()}))

    @property
    def compressions(self) -> tuple[str, ...]:
        """The compressions of its vectors, without the empty one."""
        names = (str(row["transform"]) for row in self.rows.values())
        return tuple(dict.fromkeys(filter(None, names)))

    @property
    def deepest(self) -> pd.Series:
        """The candidate that determines its cost: one forward pass up to it provides all others."""
        return max(self.rows.values(), key=lambda row: int(row["layer"]))

    def beats(self, other: "Pick") -> bool:
        """Whether it scores at least as much in every column."""
        return all(row["value"] >= other.rows[column]["value"] for column, row in self.rows.items())


def picks_of(columns: Mapping[Column, Compared]) -> tuple[Pick, ...]:
    """Backbones that are shown to lose little in every column, with one layer for all if possible, by cost.

    Each is given with its cheapest layer that scores higher, in some column, than all that cost less.
    """
    safe = {column: comparison.safe for column, comparison in columns.items()}
    picks = []
    for name in sorted(set.intersection(*({*rows["backbone"].astype(str)} for rows in safe.values()))):
        by_column = {
            column: rows[rows["backbone"] == name].set_index("layer", drop=False)
            for column, rows in safe.items()
        }
        common = sorted(set.intersection(*({*rows["layer"]} for rows in by_column.values())))
        for layer in common or [None]:
            items = by_column.items()
            taken = {column: rows.loc[rows.index.min() if layer is None else layer] for column, rows in items}
            picks.append(Pick(name, taken, tuple(other for other in common if other != layer)))
    cheapest: dict[str, Pick] = {}
    for pick in by_cost(picks):
        if pick.backbone not in cheapest and not any(other.beats(pick) for other in cheapest.values()):
            cheapest[pick.backbone] = pick
    return tuple(cheapest.values())


def by_cost(picks: Sequence[Pick]) -> list[Pick]:
    """Picks with the cheapest first: by time if known for all, then by weights if known, then by depth."""
    known = [name for name in COSTS if all(pick.deepest[name] >= 0 for pick in picks)]
    costs = [*known, "layer"]
    return sorted(picks, key=lambda pick: (*(pick.deepest[name] for name in costs), pick.backbone))


def least_loss(columns: Mapping[Column, Compared]) -> Pick | None:
    """The backbone, at its best layers, with the smallest maximum loss; None if none has all columns."""
    frames = {column: comparison.rows for column, comparison in columns.items()}
    names = set.intersection(*({*rows["backbone"].astype(str)} for rows in frames.values()))
    picks = []
    for name in sorted(names):
        first = {column: rows[rows["backbone"] == name].iloc[0] for column, rows in frames.items()}
        picks.append(Pick(name, first, compromise=True))
    worst = {pick.backbone: min(row["difference"] for row in pick.rows.values()) for pick in picks}
    return max(by_cost(picks), key=lambda pick: worst[pick.backbone], default=None)


@dataclass(frozen=True)
class Recommendation:
    """Recommended picks, the cheapest first; if none is shown to lose little, the one that loses least."""

    picks: tuple[Pick, ...]
    columns: Mapping[Column, Compared]
    fronts: Mapping[Column, pd.DataFrame]  # Pareto-optimal layers in score and latency
    device: str  # device of the latencies; "" without any
    notes: tuple[str, ...]  # caveats, one sentence each
    code: tuple[str, ...]  # for each pick, lines of Python that compute its vectors
    limited: bool = False  # whether limits left candidates out
    warnings: tuple[str, ...] = ()  # first of all: tests that cannot rank, one sentence each

    @property
    def frame(self) -> pd.DataFrame:
        """One row per pick and column, columns `PICK`."""
        rows = [
            {
                "rank": rank,
                **_layer_fields(column, row),
                "bytes": float(row["bytes"]),
                "licence": row["licence"],
                "compression": row["transform"],
                "thresholds": row["thresholds"],
                "other_layers": list(pick.others),
                "reason": self.reason(pick),
            }
            for rank, pick in enumerate(self.picks, start=1)
            for column, row in pick.rows.items()
        ]
        return pd.DataFrame(rows, columns=PICK)

    @property
    def pareto(self) -> pd.DataFrame:
        """The fronts of all columns, by column, the cheapest layer first."""
        fronts = self.fronts.items()
        rows = [_layer_fields(column, row) for column, front in fronts for _, row in front.iterrows()]
        return pd.DataFrame(rows).drop(columns="gflops", errors="ignore")

    def reason(self, pick: Pick) -> str:
        """Why a pick is recommended, as a sentence without its full stop."""
        heads = {column: f"{column.heading}: " if len(pick.rows) > 1 else "" for column in pick.rows}
        texts = [f"{head}{self._compared(pick, column)}" for column, head in heads.items()]
        if len(pick.layers) > 1:
            places = {(int(row["layer"]), str(row["pooling"])) for row in pick.rows.values()}
            layers = " and ".join(f"{layer} {pooling}" for layer, pooling in sorted(places))
            texts.append(f"no single layer is enough for all tasks, use layers {layers}")
        if pick.compromise:
            texts.insert(0, COMPROMISE.format(lost=f"{next(iter(self.columns.values())).may_lose:g}"))
        return "; ".join(texts)

    def _compared(self, pick: Pick, column: Column) -> str:
        text = self._lost(pick, column)
        return ", ".join(filter(None, (text, str(pick.rows[column]["thresholds"]))))

    def _lost(self, pick: Pick, column: Column) -> str:
        best, row = self.columns[column].best, pick.rows[column]
        if (best["backbone"], best["layer"]) == (row["backbone"], row["layer"]):
            among = " of what the limits leave" if self.limited else ""
            return f"scores best{_compression(best)}{among}, {_score(best)}"
        lost = f"loses at most {fixed(row['loss'], 1)} points against"
        lost = f"is {fixed(-row['difference'], 1)} points below" if math.isnan(row["loss"]) else lost
        reference = f"{best['backbone']} layer {best['layer']} {best['pooling']}{_compression(best)}"
        return f"{lost} {reference} ({_score(best)}), {_saving(row, best)}"


def _saving(row: pd.Series, best: pd.Series) -> str:
    """What one candidate costs instead of another: time, or if unknown, weights, or its layer."""
    for name, text, unit in (("ms", ms_text, " ms"), ("parameters", count_text, " parameters")):
        if row[name] >= 0 and best[name] >= 0 and row[name] != best[name]:
            than = "instead of" if row[name] < best[name] else "against"
            return f"{text(row[name])}{unit} {than} {text(best[name])}"
    return f"layer {row['layer']} of {row['depth']}"


def _compression(row: pd.Series) -> str:
    return f" by {row['transform']}" if row["transform"] else ""


def pick_table(recommendation: Recommendation) -> pd.DataFrame:
    """The picks as text; with a column of compressions if there are any."""
    table = pd.DataFrame(
        {
            "backbone": pick.backbone,
            "layer": f"{', '.join(map(str, pick.layers))}/{row['depth']}",
            "pooling": ", ".join(dict.fromkeys(str(row["pooling"]) for row in pick.rows.values())),
            **{column.heading: _score(layer) for column, layer in pick.rows.items()},
            "loses at most": ", ".join(fixed(layer["loss"], 1) for layer in pick.rows.values()),
            "ms": ms_text(row["ms"]),
            "weights": count_text(row["parameters"]),
            "dim": fixed(row["dim"], 0),
            "compression": ", ".join(pick.compressions),
            "GB per million vectors": fixed(max(layer["bytes"] for layer in pick.rows.values()) / 1000, 2),
            "licence": str(row["licence"]),
            "other layers": ", ".join(map(str, pick.others)),
        }
        for pick in recommendation.picks
        for row in [pick.deepest]
    )
    return table if table["compression"].any() else table.drop(columns="compression")


def pareto_table(recommendation: Recommendation, column: Column) -> pd.DataFrame:
    """The front of one column as text."""
    return pd.DataFrame(
        {
            "backbone": row["backbone"],
            "layer": place_text(row["layer"], row["depth"], row["pooling"]),
            column.heading: _score(row),
            "loses at most": fixed(row["loss"], 1),
            "ms": ms_text(row["ms"]),
            "weights": count_text(row["parameters"]),
        }
        for _, row in recommendation.fronts[column].iterrows()
    )


def _layer_fields(column: Column, row: pd.Series) -> dict[str, object]:
    return {
        **{name: getattr(column, name) for name in ("task", "dataset", "protocol", "metric")},
        "backbone": row["backbone"],
        **{name: int(row[name]) for name in ("layer", "depth")},
        "pooling": row["pooling"],
        "score": float(row["value"]),
        **{name: float(row[name]) for name in ("ci_low", "ci_high", "difference", "loss", *UP_TO)},
    }


def _score(row: pd.Series) -> str:
    return score_text(*(float(row[name]) for name in INTERVAL))
