"""What to use: backbones and layers that may be the best in every column, the cheapest first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from leaderboards.display import count_text, fixed, ms_text, score_text
from leaderboards.records.items import Place
from leaderboards.scores.column import Column
from leaderboards.scores.differences import SetTest, known_items, places_of
from tasks.uncertainty import confidence_set

HOPELESS = 2.0
"""Intervals of two scores, added up, times this: what is so far below the best needs no test. Whatever the
pairing, that is 3.9 standard errors of the difference."""

PICK = [
    *("rank", "backbone", "layer", "depth", "pooling", "task", "dataset", "protocol", "metric"),
    *("score", "half", "ms", "parameters", "gflops", "dim", "bytes", "licence", "loss", "other_layers"),
    "reason",
]
PARETO = [
    *("task", "dataset", "protocol", "metric", "backbone", "layer", "depth", "pooling"),
    *("score", "half", "ms", "parameters", "dim", "may_be_best"),
]


@dataclass(frozen=True, slots=True)
class Possible:
    """Candidates of one column that may be the best, with 95 %, the best first, and what was not compared."""

    rows: pd.DataFrame
    untested: tuple[tuple[str, int], ...] = ()  # backbones and blocks without items, or of others, or too few

    @property
    def best(self) -> "pd.Series":
        return self.rows.iloc[0]


def may_be_best(rows: pd.DataFrame, column: Column, folder: Path, test: SetTest = confidence_set) -> Possible:
    """Which of at least one candidate of a column the data cannot tell from the best, each layer a rival."""
    order = ["value", "layer", "backbone"]
    rows = rows.sort_values(order, ascending=[False, True, True], kind="stable").reset_index(drop=True)
    top = rows.iloc[0]
    reach = HOPELESS * (rows["half"] + top["half"])
    near = rows[~(top["value"] - rows["value"] > reach)].reset_index(drop=True)
    items = {
        (str(name), layer): measured
        for name, part in near.groupby("backbone", sort=True)
        for layer, measured in known_items(column, str(name), places_of(part), folder).items()
    }
    rivals = [*zip(near["backbone"].astype(str), places_of(near), strict=True)]
    tested = [rival for rival in rivals if rival in items]
    verdicts: dict[tuple[str, Place], bool | None] = {}
    if tested[:1] == rivals[:1] and len(tested) > 1:
        verdicts |= zip(tested, test([[items[rival]] for rival in tested], column.metric), strict=True)
    verdicts[rivals[0]] = True
    possible = near[[verdicts.get(rival) is True for rival in rivals]].reset_index(drop=True)
    untested = near[[verdicts.get(rival) is None for rival in rivals]]
    return Possible(possible, tuple(zip(untested["backbone"], untested["layer"].astype(int), strict=True)))


@dataclass(frozen=True, slots=True)
class Pick:
    """A backbone, and the layer of it to take in each column: the same for all where there is one."""

    backbone: str
    rows: Mapping[Column, pd.Series]  # the candidates, each the cheapest that may be the best
    others: tuple[int, ...] = ()  # further blocks that may be the best in every column
    loss: float = 0.0  # most points below the best of a column; 0 where it may be the best in all of them

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted({int(row["layer"]) for row in self.rows.values()}))

    @property
    def deepest(self) -> pd.Series:
        """The candidate that decides what it costs: one forward up to it reads all others."""
        return max(self.rows.values(), key=lambda row: int(row["layer"]))

    @property
    def rank(self) -> tuple[float, float, int, str]:
        """Sort key: time, or where that is not known the weights, then the depth."""
        row = self.deepest
        cost = [math.inf if math.isnan(row[name]) else float(row[name]) for name in ("ms", "parameters")]
        return cost[0], cost[1], int(row["layer"]), self.backbone


def picks_of(possible: Mapping[Column, Possible]) -> tuple[Pick, ...]:
    """Backbones that may be the best in every column, with one layer for all if any, the cheapest first."""
    names = [{str(name) for name in rivals.rows["backbone"]} for rivals in possible.values()]
    picks = []
    for name in sorted(set.intersection(*names)):
        layers = {column: rivals.rows[rivals.rows["backbone"] == name] for column, rivals in possible.items()}
        common = sorted(set.intersection(*(set(rows["layer"].astype(int)) for rows in layers.values())))
        taken = {
            column: rows[rows["layer"] == (common[0] if common else rows["layer"].min())].iloc[0]
            for column, rows in layers.items()
        }
        picks.append(Pick(name, taken, tuple(common[1:])))
    return tuple(sorted(picks, key=lambda pick: pick.rank))


def least_loss(candidates: Mapping[Column, pd.DataFrame]) -> Pick | None:
    """The backbone, at its best layers, that loses least where it loses most; None where none has all."""
    names = [{str(name) for name in rows["backbone"]} for rows in candidates.values()]
    ordered = {
        column: rows.sort_values(["value", "layer"], ascending=[False, True], kind="stable")
        for column, rows in candidates.items()
    }
    picks = []
    for name in sorted(set.intersection(*names)):
        taken = {column: rows[rows["backbone"] == name].iloc[0] for column, rows in ordered.items()}
        loss = max(float(ordered[column]["value"].iloc[0] - row["value"]) for column, row in taken.items())
        picks.append(Pick(name, taken, loss=loss))
    return min(picks, key=lambda pick: (pick.loss, pick.rank), default=None)


@dataclass(frozen=True)
class Recommendation:
    """What to use, the cheapest first; where none may be the best in every column, what loses least."""

    picks: tuple[Pick, ...]
    possible: Mapping[Column, Possible]
    fronts: Mapping[Column, pd.DataFrame]  # layers above which none scores that takes no longer
    device: str  # where times were measured; "" where none were
    notes: tuple[str, ...]  # what a reader must know, one sentence each
    code: tuple[str, ...]  # for each pick, lines of Python that give its vectors

    @property
    def frame(self) -> pd.DataFrame:
        """One row a pick and column, columns `PICK`."""
        rows = [
            {
                "rank": rank,
                **_layer_fields(column, row),
                "bytes": float(4 * row["dim"]),
                "licence": row["licence"],
                "loss": pick.loss,
                "other_layers": list(pick.others),
                "reason": self.reason(pick),
            }
            for rank, pick in enumerate(self.picks, start=1)
            for column, row in pick.rows.items()
        ]
        return pd.DataFrame(rows, columns=PICK)

    @property
    def pareto(self) -> pd.DataFrame:
        """The fronts of all columns, columns `PARETO`."""
        rows = [
            _layer_fields(column, row)
            | {"may_be_best": (row["backbone"], row["layer"]) in _layers(self.possible[column])}
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
        heads = {column: f"{column.heading}: " if len(pick.rows) > 1 else "" for column in pick.rows}
        texts = [f"{head}{self._compared(pick, column)}" for column, head in heads.items()]
        if len(pick.layers) > 1:
            layers = " and ".join(map(str, pick.layers))
            texts.append(f"no one of its layers will do for all, take layers {layers}")
        return "; ".join(texts)

    def _compared(self, pick: Pick, column: Column) -> str:
        best, row = self.possible[column].best, pick.rows[column]
        if (best["backbone"], best["layer"]) == (row["backbone"], row["layer"]):
            return f"scores best, {_score(best)}"
        rival = f"cannot be told from {best['backbone']} layer {best['layer']} ({_score(best)})"
        return f"{rival}, {_saving(row, best)}"


def _saving(row: pd.Series, best: pd.Series) -> str:
    """What one candidate costs instead of another: time, or where it is not known, weights."""
    if not (math.isnan(row["ms"]) or math.isnan(best["ms"])):
        than = "instead of" if row["ms"] < best["ms"] else "against"
        return f"takes {ms_text(row['ms'])} ms {than} {ms_text(best['ms'])}"
    sizes = [count_text(layer["parameters"]) for layer in (row, best)]
    if all(sizes) and sizes[0] != sizes[1]:
        return f"has {sizes[0]} weights instead of {sizes[1]}"
    if row["backbone"] == best["backbone"]:
        return f"ends at layer {row['layer']} instead of {best['layer']}"
    return f"ends at layer {row['layer']} of {row['depth']}"


def pick_table(recommendation: Recommendation) -> pd.DataFrame:
    """The picks as text, with all layers that would do as well."""
    return pd.DataFrame(
        {
            "backbone": pick.backbone,
            "layer": f"{', '.join(map(str, pick.layers))}/{row['depth']}",
            "pooling": ", ".join(dict.fromkeys(str(layer["pooling"]) for layer in pick.rows.values())),
            **{column.heading: _score(layer) for column, layer in pick.rows.items()},
            "ms": ms_text(row["ms"]),
            "weights": count_text(row["parameters"]),
            "dim": fixed(row["dim"], 0),
            "GB a million": fixed(4 * row["dim"] / 1000, 2),
            "licence": str(row["licence"]),
            "as good": ", ".join(map(str, pick.others)),
        }
        for pick in recommendation.picks
        for row in [pick.deepest]
    )


def pareto_table(recommendation: Recommendation, column: Column) -> pd.DataFrame:
    """The front of one column as text; ``≈`` marks what may be the best."""
    may = _layers(recommendation.possible[column])
    return pd.DataFrame(
        {
            "backbone": row["backbone"],
            "layer": f"{row['layer']}/{row['depth']}",
            column.heading: _score(row) + (" ≈" if (row["backbone"], row["layer"]) in may else ""),
            "ms": ms_text(row["ms"]),
            "weights": count_text(row["parameters"]),
        }
        for _, row in recommendation.fronts[column].iterrows()
    )


def _layer_fields(column: Column, row: pd.Series) -> dict[str, object]:
    return {
        **{name: getattr(column, name) for name in ("task", "dataset", "protocol", "metric")},
        **{name: row[name] for name in ("backbone", "pooling")},
        **{name: int(row[name]) for name in ("layer", "depth")},
        "score": float(row["value"]),
        **{name: float(row[name]) for name in ("half", "ms", "parameters", "gflops", "dim")},
    }


def _layers(possible: Possible) -> set[tuple[str, int]]:
    return set(zip(possible.rows["backbone"], possible.rows["layer"], strict=True))


def _score(row: pd.Series) -> str:
    return score_text(float(row["value"]), float(row["half"]))
