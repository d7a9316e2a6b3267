"""Recommendations: the cheapest backbones and layers that are shown to lose little in every column."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from layerboard.leaderboards.blocks.display import (
    bytes_text,
    count_text,
    fixed,
    ms_text,
    place_text,
    score_text,
)
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import UP_TO, image_bytes
from layerboard.leaderboards.board.differences import Bounds
from layerboard.leaderboards.board.frames import INTERVAL
from layerboard.tasks.statistics.resolution import CRITICAL, enough_units

PICK = [
    *("rank", "backbone", "layer", "depth", "pooling", "task", "dataset", "protocol", "metric"),
    *("score", "ci_low", "ci_high", "difference", "loss", "ms", "timed_at", "parameters", "gflops", "dim"),
    *("bytes", "image_bytes", "licence", "compression", "thresholds", "other_layers", "reason"),
]

COMPROMISE = (
    "nothing is shown to lose at most {lost} points in every task; of this one the maximum loss is smallest"
)
UNKNOWN = "by scores where it is not known how much may be lost, and else by the smallest maximum loss"
SCORES_ALONE = "by scores alone: how much may be lost is not known"
COSTS = ("ms", "parameters")  # costs to sort picks by, if known for all of them


@dataclass(frozen=True, slots=True)
class Compared:
    """Candidates of one column that limits leave, compared with the best of all.

    ``difference`` is a candidate's score minus the highest one, in points. ``loss`` is by how many points the
    true best of all candidates is above it, at most (`leaderboards.board.differences.Bounds`); NaN if it
    could not be compared. The highest of ``rows`` comes first; ``best`` is the highest of all.
    """

    rows: pd.DataFrame
    best: pd.Series
    max_loss: float  # points
    untested: tuple[str, ...] = ()  # backbones that could not be compared with the best

    @property
    def left_out(self) -> bool:
        """Whether limits left out the candidate with the highest score."""
        return bool(self.rows["difference"].iloc[0] < 0)

    @property
    def near(self) -> pd.DataFrame:
        """Candidates that score no more than ``max_loss`` below the best."""
        return self.rows[self.rows["difference"] >= -self.max_loss]

    @property
    def safe(self) -> pd.DataFrame:
        """Candidates that are shown to lose no more than that."""
        return self.rows[self.rows["loss"] <= self.max_loss]

    def undecided(self, pick: pd.Series) -> pd.DataFrame:
        """A pick and cheaper candidates that may lose too much, by the items that would be ``enough``."""
        rows = self.near[(self.near["loss"] > self.max_loss) & (self.near["difference"] > -self.max_loss)]
        cost = next(name for name in (*COSTS, "layer") if not pd.isna([*rows[name], pick[name]]).any())
        rows = rows[(rows[cost] < pick[cost]) | (rows.index == pick.name)]
        reach, room = rows["difference"] + rows["loss"], rows["difference"] + self.max_loss
        numbers = zip(rows["n"], reach, room, strict=True)
        enough = [enough_units(far, bound / CRITICAL, n) for n, bound, far in numbers]
        ranked: pd.DataFrame = rows.assign(enough=enough).sort_values("enough", kind="stable")
        return ranked


def compare_candidates(rows: pd.DataFrame, every: pd.DataFrame, bounds: Bounds, max_loss: float) -> Compared:
    """The candidates of a column that limits leave, at least one, compared with ``every`` candidate."""
    order = ["value", "layer", "backbone"]
    best = every.sort_values(order, ascending=[False, True, True], kind="stable").iloc[0]
    rows = rows.sort_values(order, ascending=[False, True, True], kind="stable").reset_index(drop=True)
    rows = rows.assign(difference=rows["value"] - best["value"], loss=bounds.losses_of(rows))
    return Compared(rows, best, max_loss, tuple(sorted(bounds.untested)))


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
    def places(self) -> list[tuple[int, str]]:
        """Its layers with their poolings, each pair once, in order."""
        return sorted({(int(row["layer"]), str(row["pooling"])) for row in self.rows.values()})

    @property
    def compressions(self) -> tuple[str, ...]:
        """The compressions of its vectors, without the empty one."""
        names = (str(row["transform"]) for row in self.rows.values())
        return tuple(dict.fromkeys(filter(None, names)))

    @property
    def deepest(self) -> pd.Series:
        """The candidate that determines its weights: a network up to it provides all others."""
        return max(self.rows.values(), key=lambda row: int(row["layer"]))

    @property
    def timed(self) -> list[pd.Series]:
        """The slowest candidate at each view size: one forward pass up to it provides those of its size."""
        slowest: dict[str, pd.Series] = {}
        for row in sorted(self.rows.values(), key=lambda row: int(row["layer"])):
            slowest[str(row["timed_at"])] = row
        return [*slowest.values()]

    @property
    def total(self) -> pd.Series:
        """Its time: fields ``ms``, of one pass at each view size, ``timed_at`` and ``disturbed``."""
        rows = self.timed
        sizes = str(rows[0]["timed_at"]) if len(rows) == 1 else f"{len(rows)} sizes"
        disturbed = any(row["disturbed"] == 1 for row in rows)
        time = sum(float(row["ms"]) for row in rows)
        return pd.Series({"ms": time, "timed_at": sizes, "disturbed": disturbed})

    @property
    def costs(self) -> dict[str, float]:
        """Its `COSTS`: milliseconds of a pass of an image at each view size, and weights; NaN if unknown."""
        return {"ms": self.total["ms"], "parameters": float(self.deepest["parameters"])}

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
    costs = [pick.costs for pick in picks]
    known = [name for name in COSTS if all(each[name] >= 0 for each in costs)]

    def order(number: int) -> tuple[object, ...]:
        pick = picks[number]
        return *(costs[number][name] for name in known), pick.deepest["layer"], pick.backbone

    return [picks[number] for number in sorted(range(len(picks)), key=order)]


def least_loss(columns: Mapping[Column, Compared]) -> Pick | None:
    """The backbone whose maximum loss over all columns is smallest, each at the layer that loses least there.

    Losses that are unknown are replaced by what is observed. None if no backbone has all columns.
    """
    frames = {
        column: each.rows.assign(least=each.rows["loss"].fillna(-each.rows["difference"]))
        for column, each in columns.items()
    }
    names = set.intersection(*({*rows["backbone"].astype(str)} for rows in frames.values()))
    picks, most = [], dict[str, float]()
    for name in sorted(names):
        own = {column: rows[rows["backbone"] == name] for column, rows in frames.items()}
        taken = {column: rows.loc[rows["least"].idxmin()] for column, rows in own.items()}
        picks.append(Pick(name, taken, compromise=True))
        most[name] = max(row["least"] for row in taken.values())
    return min(by_cost(picks), key=lambda pick: most[pick.backbone], default=None)


@dataclass(frozen=True)
class Recommendation:
    """Recommended picks, the cheapest first; if none is shown to lose little, the one that loses least."""

    picks: tuple[Pick, ...]
    columns: Mapping[Column, Compared]
    fronts: Mapping[Column, pd.DataFrame]  # Pareto-optimal layers in score and latency
    device: str  # device of the latencies; "" without any
    notes: tuple[str, ...]  # caveats, one sentence each
    code: tuple[str, ...]  # for each pick, lines of Python that compute its vectors
    details: tuple[str, ...] = ()  # further caveats, each of one column
    warnings: tuple[str, ...] = ()  # first of all: tests that cannot rank, one sentence each

    @property
    def frame(self) -> pd.DataFrame:
        """One row per pick and column, columns `PICK`."""
        rows = [
            {
                "rank": rank,
                **_layer_fields(column, row),
                "timed_at": row["timed_at"],
                "bytes": float(row["bytes"]),
                "image_bytes": image_bytes(row),
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
            layers = " and ".join(f"{layer} {pooling}" for layer, pooling in pick.places)
            texts.append(f"no single layer is enough for all tasks, use layers {layers}")
        if pick.compromise:
            texts.insert(0, self._compromise(pick))
        return "; ".join(texts)

    def _compared(self, pick: Pick, column: Column) -> str:
        text = self._lost(pick, column)
        return ", ".join(filter(None, (text, str(pick.rows[column]["thresholds"]))))

    def _lost(self, pick: Pick, column: Column) -> str:
        compared, row = self.columns[column], pick.rows[column]
        best = compared.best
        known = not math.isnan(row["loss"])
        at_most = f"loses at most {fixed(row['loss'], 1)} points"
        if not row["loss"]:
            at_most = (
                "shown to be the best of those compared" if compared.untested else "shown to be the best"
            )
        if not row["difference"]:
            head = f"scores best{_compression(row)}, {_score(row)}"
            return f"{head}{f', {at_most}' if known else ''}{_speed(row)}"
        below = f"{fixed(-row['difference'], 1)} points below {named_layer(best)}{_compression(best)}"
        below += f" ({_score(best)})"
        out = ", which the limits leave out" if compared.left_out else ""
        below = f"{at_most}, {below}" if known else f"is {below}"
        return f"{below}{out}, {_saving(row, best)}"

    def summary(self, pick: Pick) -> str:
        """Why a pick is recommended, in short: for several tasks, that in which it may lose most."""
        if len(pick.rows) == 1:
            return self.reason(pick)
        texts = [self._compromise(pick)] * pick.compromise
        losses = {column: row["loss"] for column, row in pick.rows.items() if not math.isnan(row["loss"])}
        where = "at worst" if len(losses) == len(pick.rows) else "at worst of the tasks with a known loss"
        if not losses:
            where, losses = (
                "furthest from the best",
                {column: -row["difference"] for column, row in pick.rows.items()},
            )
        worst = max(losses, key=losses.__getitem__)
        return "; ".join([*texts, f"{where}, {worst.heading}: {self._compared(pick, worst)}"])

    def _compromise(self, pick: Pick) -> str:
        """Why a pick is recommended although it is not shown to lose little."""
        known = [not math.isnan(row["loss"]) for row in pick.rows.values()]
        if all(known):
            return COMPROMISE.format(lost=f"{next(iter(self.columns.values())).max_loss:g}")
        return UNKNOWN if any(known) else SCORES_ALONE


def _speed(row: pd.Series) -> str:
    """The time of an image up to a layer, as the end of a sentence; "" if it is unknown."""
    size = f" at {row['timed_at']}" if row["timed_at"] else ""
    return f", {_milliseconds(row, ' ms an image' + size)}" if row["ms"] >= 0 else ""


def _saving(row: pd.Series, best: pd.Series) -> str:
    """What one candidate costs instead of another: time, or if unknown, weights, or its layer."""
    for name, text, unit in (("ms", _milliseconds, " ms"), ("parameters", _weights, " parameters")):
        if row[name] >= 0 and best[name] >= 0 and row[name] != best[name]:
            than = "instead of" if row[name] < best[name] else "against"
            return f"{text(row, unit)} {than} {text(best)}"
    return f"layer {row['layer']} of {row['depth']}"


def named_layer(row: pd.Series) -> str:
    """A candidate in words: backbone, layer and pooling."""
    return f"{row['backbone']} layer {row['layer']} {row['pooling']}"


def _compression(row: pd.Series) -> str:
    return f" by {row['transform']}" if row["transform"] else ""


def pick_table(recommendation: Recommendation) -> pd.DataFrame:
    """The picks as text; with columns of compressions and of view sizes if there are any."""
    table = pd.DataFrame(
        {
            "backbone": pick.backbone,
            "layer": f"{', '.join(str(layer) for layer, _ in pick.places)}/{row['depth']}",
            "pooling": ", ".join(poolings if len({*poolings}) > 1 else poolings[:1]),
            **{column.heading: _score(layer) for column, layer in pick.rows.items()},
            "loses at most": ", ".join(
                "unknown" if math.isnan(layer["loss"]) else fixed(layer["loss"], 1)
                for layer in pick.rows.values()
            ),
            "ms": _milliseconds(pick.total),
            "at, px": str(pick.total["timed_at"]),
            "weights": _weights(row),
            "dim": fixed(row["dim"], 0),
            "compression": ", ".join(pick.compressions),
            "a vector": _each(layer["bytes"] for layer in pick.rows.values()),
            "an image": _each(map(image_bytes, pick.rows.values())),
            "licence": str(row["licence"]),
            "other layers": ", ".join(map(str, pick.others)),
        }
        for pick in recommendation.picks
        for row, poolings in [(pick.deepest, [pooling for _, pooling in pick.places])]
    )
    empty = [name for name in ("compression", "at, px") if not table[name].any()]
    return table.drop(columns=empty)


def _each(sizes: Iterable[float]) -> str:
    return ", ".join(dict.fromkeys(filter(None, map(bytes_text, sizes))))


def _milliseconds(row: pd.Series, unit: str = "") -> str:
    return f"{ms_text(row['ms'])}{unit}" + " (disturbed)" * bool(row["disturbed"] == 1)


def _weights(row: pd.Series, unit: str = "") -> str:
    """Weights up to a layer; only about if they were not measured, as times were not."""
    text = count_text(row["parameters"]) + unit
    return f"about {text}" if row["parameters"] >= 0 and math.isnan(row["ms"]) else text


def pareto_table(recommendation: Recommendation, column: Column) -> pd.DataFrame:
    """The front of one column as text."""
    return pd.DataFrame(
        {
            "backbone": row["backbone"],
            "layer": place_text(row["layer"], row["depth"], row["pooling"]),
            column.heading: _score(row),
            "loses at most": fixed(row["loss"], 1),
            "ms": _milliseconds(row),
            "weights": _weights(row),
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
