"""Candidates for a column: every scored layer with its loss, costs and licence, and limits on these."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, fields
from math import nan
from typing import Any

import pandas as pd

from layerboard.leaderboards.answer.thresholds import threshold_text
from layerboard.leaderboards.blocks.display import pooling_rank
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import VECTOR, bytes_of, with_costs
from layerboard.leaderboards.board.frames import candidates, is_floor
from layerboard.leaderboards.findings.facts import UNKNOWN, Facts, fits_licence
from layerboard.tasks.framework.transforms import FLOAT32
from layerboard.zoo.errors import some
from layerboard.zoo.spec import entry_name

MOST_NAMED = 5  # maximum number of backbones named in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One layer of a backbone with its vectors, which competes in a column; unknown numbers are NaN."""

    backbone: str
    layer: int  # block, from 1
    depth: int  # blocks of the backbone
    pooling: str
    transform: str  # compression of the vectors; "" for none
    value: float  # score, in percent
    ci_low: float  # of its 95 % interval
    ci_high: float
    difference: float  # its score minus the highest one of the column, in points
    loss: float  # the true best of the column is at most so many points above it, with 95 %
    maybe: bool  # whether it may be the best itself: it is not shown to be worse
    n: int  # number of items
    unit: str  # what the items are
    view_size: str  # at which the task shows an image; "" if unknown
    timed_at: str  # view size of the time: of the task, or else the network's own; "" if unknown
    ms: float  # milliseconds of one image up to the layer
    disturbed: bool  # whether other work disturbed that time
    parameters: float  # up to the layer; not measured, an equal share of the network's a block
    gflops: float
    dim: float  # of a vector
    tokens: float  # patch tokens of an image
    bytes: float  # of a vector
    licence: str  # of the weights; ``unknown``
    revision: str  # commit of its repository or digest of its local weights
    thresholds: str  # of its cosines, in words; "" for tasks without any

    @classmethod
    def of_row(cls, row: Mapping[Hashable, Any]) -> "Candidate":
        """The candidate of a row of the frame of `candidates_of`."""
        return cls(**{name: row[name] for name in CANDIDATE})

    @property
    def image_bytes(self) -> float:
        """Bytes of all vectors of an image: one, or one a patch token."""
        return self.bytes * (self.tokens if self.pooling == "grid" else 1)


CANDIDATE = [field.name for field in fields(Candidate)]


def candidates_of(
    column: Column,
    bounded: pd.DataFrame,
    costs: pd.DataFrame,
    facts: Mapping[str, Facts],
    compressed: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The candidates of a column, the highest first: a frame with the columns `CANDIDATE`.

    ``bounded`` are the `Bounds.rows` of the column. Of equal scores the first backbone in table order comes
    first, then the usual pooling, then the lower layer. Times are those at the view size of the task, by
    ``costs`` with the columns `leaderboards.board.costs.LAYER_COSTS`; ``facts`` are by name of the entry.
    ``compressed`` are the records of compressed vectors if these are candidates, too.
    """
    scores, sizes = column.rows, {}
    if compressed is not None:
        scores = pd.concat([scores, column.select(compressed)], ignore_index=True)
        sizes = bytes_of(compressed)
    ranks = {backbone.name: rank for rank, backbone in enumerate(column.backbones)}
    ranked = bounded.assign(
        rank=bounded["backbone"].map(ranks),
        pooled=bounded["pooling"].map(pooling_rank),
        difference=bounded["value"] - bounded["value"].max(),
    )
    keys = {"value": False, "rank": True, "primary": False, "layer": True, "pooled": True, "transform": True}
    ranked = ranked.sort_values([*keys], ascending=[*keys.values()], kind="stable")
    rows = with_costs(ranked, costs)
    known = [facts.get(entry_name(name), UNKNOWN) for name in rows["backbone"]]
    places = zip(known, rows["layer"], strict=True)
    widths = [dict(enumerate(each.widths, start=1)).get(layer, nan) for each, layer in places]
    shares = [each.parameters for each in known] * rows["layer"] / rows["depth"]
    rows = rows.assign(
        timed_at=rows["timed_at"].where(rows["ms"].notna(), ""),
        thresholds=[threshold_text(scores, column.task, row) for row in rows.to_dict("records")],
        licence=[each.licence or "unknown" for each in known],
        dim=rows["dim"].fillna(pd.Series(widths, rows.index, dtype=float)),
        parameters=rows["parameters"].fillna(shares),
    )
    vectors = zip(*(rows[name].tolist() for name in (*VECTOR, "dim")), strict=True)
    return rows.assign(bytes=[sizes.get((*key,), FLOAT32 * dim) for *key, dim in vectors])[CANDIDATE]


def compressed_of(column: Column, compressed: pd.DataFrame) -> pd.DataFrame:
    """The scored blocks of a column with compressed vectors, in every pooling."""
    rows = column.select(compressed)
    return candidates(rows[(rows["metric"] == column.metric) & ~is_floor(rows)])


def exempt(rows: pd.DataFrame, max_ms: float) -> "pd.Series[bool]":
    """Candidates that a limit of time would leave out, but whose times other work disturbed."""
    return ~(rows["ms"] <= max_ms) & rows["disturbed"].eq(other=True)


def apply_limits(
    rows: pd.DataFrame, ceilings: Mapping[str, float | None], *, commercial: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    """The candidates within all limits, and what each limit alone excludes, one sentence each.

    ``ceilings`` are by column, None is no limit; an unknown value exceeds any limit. Times that other work
    disturbed are not limited: without it the backbone may be as fast as is asked. With ``commercial``, the
    licence must be known to allow commercial use. Of a layer, the best vectors are kept; of equal ones the
    smallest.
    """
    refused = dict[str, "pd.Series[bool]"]()
    for name, most in ceilings.items():
        if most is None:
            continue
        words = f"--max-{name} {most:{'' if isinstance(most, int) else 'g'}}"
        beyond = ~(rows[name] <= most)
        refused[words] = beyond & ~exempt(rows, most) if name == "ms" else beyond
    if commercial:
        fits = [fits_licence(name, "commercial") for name in rows["licence"]]
        refused["--licence commercial"] = ~pd.Series(fits, rows.index, dtype=bool)
    places = [rows["backbone"], rows["layer"], rows["transform"]]
    what = "pairs of a layer and a compression" if rows["transform"].any() else "layers"
    keep, sentences = pd.Series(data=True, index=rows.index), []
    for words, beyond in refused.items():
        keep &= ~beyond
        by_backbone = beyond.groupby(rows["backbone"]).all()
        names = sorted(str(name) for name in by_backbone.index[by_backbone])
        all_of = f", all of {some(names, MOST_NAMED)}" if names else ""
        out = beyond.groupby(places).all()  # in every pooling
        if out.all() and len(rows):
            sentences.append(f"{words} leaves out all {len(out)} {what}")
        elif out.any():
            sentences.append(f"{words} leaves out {out.sum()} of {len(out)} {what}{all_of}")
    rows = rows[keep].sort_values(["value", "bytes"], ascending=[False, True], kind="stable")
    return rows.drop_duplicates(["backbone", "layer"]).sort_index().reset_index(drop=True), sentences
