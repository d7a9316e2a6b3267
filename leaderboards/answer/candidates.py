"""Candidates for a column: every scored layer with its loss, costs and licence, and limits on these."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from math import inf, isnan, nan

import pandas as pd

from layerboard.leaderboards.blocks.display import cosine_text, pooling_rank, score_text, task_display
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import VECTOR, bytes_of, with_costs
from layerboard.leaderboards.findings.facts import Facts, facts_about, fits_licence
from layerboard.tasks.framework.transforms import FLOAT32
from layerboard.zoo.errors import some

PLACE = ("backbone", "layer", "tap", "pooling", "transform")  # fields that identify the vectors of a record
COSINE, RECALL = "cosine at precision ", "recall at precision "  # metrics, followed by the precision
NO_THRESHOLD = "not known for this layer"
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
    maybe: bool  # whether it may be the best itself
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
) -> tuple[Candidate, ...]:
    """The candidates of a column, the highest first.

    ``bounded`` are the `Bounds.rows` of the column. Of equal scores the first backbone in table order comes
    first, then the usual pooling, then the lower layer. Times are those at the view size of the task, by
    ``costs`` with the columns `leaderboards.board.costs.LAYER_COSTS`; ``facts`` are by name of the entry.
    ``compressed`` are the records of compressed vectors if these are candidates, too.
    """
    scores, sizes = column.rows, {}
    if compressed is not None:
        scores = pd.concat([scores, column.select(compressed)], ignore_index=True)
        sizes = bytes_of(compressed)
    rows = with_costs(_ranked(column, bounded), costs)
    known = [facts_about(name, facts) for name in rows["backbone"]]
    places = zip(known, rows["layer"], rows["depth"], strict=True)
    shares = [each.costs_at(layer, depth) for each, layer, depth in places]
    guessed = pd.DataFrame(shares, rows.index, columns=["parameters", "dim"], dtype=float)
    rows = rows.assign(
        timed_at=rows["timed_at"].where(rows["ms"].notna(), ""),
        thresholds=_threshold_texts(scores, column.task, rows),
        licence=[each.licence or "unknown" for each in known],
        parameters=rows["parameters"].fillna(guessed["parameters"]),
        dim=rows["dim"].fillna(guessed["dim"]),
    )
    vectors = zip(*(rows[name].tolist() for name in (*VECTOR, "dim")), strict=True)
    rows = rows.assign(bytes=[sizes.get((*key,), FLOAT32 * dim) for *key, dim in vectors])
    values = (rows[name].tolist() for name in CANDIDATE)
    return tuple(Candidate(**dict(zip(CANDIDATE, row, strict=True))) for row in zip(*values, strict=True))


def _ranked(column: Column, bounded: pd.DataFrame) -> pd.DataFrame:
    """Candidates with the highest first, and by how much each is below it."""
    ranks = {backbone.name: rank for rank, backbone in enumerate(column.backbones)}
    ranked = bounded.assign(
        rank=bounded["backbone"].map(ranks),
        pooled=bounded["pooling"].map(pooling_rank),
        difference=bounded["value"] - bounded["value"].max(),
    )
    keys = {"value": False, "rank": True, "primary": False, "layer": True, "pooled": True, "transform": True}
    return ranked.sort_values([*keys], ascending=[*keys.values()], kind="stable")


def exempt(candidate: Candidate, max_ms: float) -> bool:
    """Whether a limit of time would leave out a candidate, but other work disturbed its time."""
    return not candidate.ms <= max_ms and candidate.disturbed


def apply_limits(
    candidates: Sequence[Candidate], ceilings: Mapping[str, float], *, commercial: bool = False
) -> tuple[tuple[Candidate, ...], list[str]]:
    """The candidates within all limits, and what each limit alone excludes, one sentence each.

    ``ceilings`` are by field; an unknown value exceeds any limit. Times that other work
    disturbed are not limited: without it the backbone may be as fast as is asked. With ``commercial``, the
    licence must be known to allow commercial use. Of a layer, the best vectors are kept; of equal ones the
    smallest.
    """
    within: dict[str, Callable[[Candidate], bool]] = {
        f"{name}={most:{'' if isinstance(most, int) else 'g'}}": partial(_within, name=name, most=most)
        for name, most in ceilings.items()
    }
    if commercial:
        within["--licence commercial"] = lambda each: fits_licence(each.licence, "commercial")
    what = "pairs of a layer and a compression" if any(each.transform for each in candidates) else "layers"
    every, backbones = _places(candidates), {each.backbone for each in candidates}
    sentences = []
    for words, fits in within.items():
        left = [each for each in candidates if fits(each)]
        names = sorted(backbones - {each.backbone for each in left})
        all_of = f", all of {some(names, MOST_NAMED)}" if names else ""
        out = len(every) - len(_places(left))  # in every pooling
        if not left and every:
            sentences.append(f"{words} leaves out all {out} {what}")
        elif out:
            sentences.append(f"{words} leaves out {out} of {len(every)} {what}{all_of}")
    kept = [each for each in candidates if all(fits(each) for fits in within.values())]
    best: dict[tuple[str, int], Candidate] = {}
    for each in sorted(kept, key=lambda each: (-each.value, inf if isnan(each.bytes) else each.bytes)):
        best.setdefault((each.backbone, each.layer), each)
    return tuple(each for each in kept if best[each.backbone, each.layer] is each), sentences


def _within(candidate: Candidate, name: str, most: float) -> bool:
    return getattr(candidate, name) <= most or (name == "ms" and exempt(candidate, most))


def _places(candidates: Iterable[Candidate]) -> set[tuple[str, int, str]]:
    return {(each.backbone, each.layer, each.transform) for each in candidates}


def _threshold_texts(scores: pd.DataFrame, task: str, rows: pd.DataFrame) -> list[str]:
    """The thresholds of the vectors of some rows in words, for each precision with its recall.

    ``scores`` are records of one column by all metrics. A threshold holds for that layer, pooling and
    compression alone: another layer has other cosines. "" for a task without thresholds.
    """
    levels = [name.removeprefix(COSINE) for name in task_display(task).at_best if name.startswith(COSINE)]
    known: dict[tuple[Hashable, ...], tuple[float, str]] = {}
    if levels:
        fields = scores[["metric", *PLACE, "value", "reason"]].itertuples(index=False, name=None)
        known = {(metric, *vector): (float(value), reason) for metric, *vector, value, reason in fields}
    texts = []
    for vector in rows[[*PLACE]].itertuples(index=False, name=None):
        parts = []
        for level in levels:
            cosine, reason = known.get((COSINE + level, *vector), (nan, ""))
            recall, _ = known.get((RECALL + level, *vector), (nan, ""))
            text = f"{cosine_text(cosine)} for precision {level} (recall {score_text(recall)} %)"
            parts.append(f"for precision {level} {reason or NO_THRESHOLD}" if isnan(cosine) else text)
        texts.append(f"cosine threshold: {', '.join(parts)}" if levels else "")
    return texts
