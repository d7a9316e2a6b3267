"""Candidates for a choice, with their costs, and which of them limits leave."""

from collections.abc import Iterable, Mapping

import pandas as pd

from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.costs import VECTOR, Vector, bytes_of, with_costs
from layerboard.leaderboards.board.frames import INTERVAL, candidates, is_floor
from layerboard.leaderboards.findings.facts import Facts, facts_about, fits_licence
from layerboard.leaderboards.findings.thresholds import threshold_text
from layerboard.tasks.framework.transforms import FLOAT32

CANDIDATE = [
    *("backbone", "layer", "depth", "pooling", "tap", "protocol", *INTERVAL, "n", "unit"),
    *("view_size", "timed_at", "ms", "disturbed", "parameters", "gflops", "dim", "tokens", "licence"),
    *("transform", "bytes", "thresholds"),
]
MOST_NAMED = 5  # maximum number of backbones named in a sentence


def candidates_of(
    columns: Iterable[Column],
    costs: pd.DataFrame,
    facts: Mapping[str, Facts],
    compressed: pd.DataFrame | None = None,
) -> dict[Column, pd.DataFrame]:
    """Scored blocks of trained and untrained backbones, in every pooling, with their costs.

    Times are those at the view size of the column's task (`leaderboards.board.costs.with_costs`). Weights are
    those up to the layer; where these were not measured, about that: an equal share of the network's for each
    block, from the facts. ``costs`` have the columns `leaderboards.board.costs.LAYER_COSTS`, ``facts`` are by
    name of the entry; the frames have the columns `CANDIDATE`. Records of compressed vectors, if given, are
    candidates, too.
    """
    sizes = {} if compressed is None else bytes_of(compressed)
    every = {column: _scored(column, compressed) for column in columns}
    return {column: _with_costs(rows, costs, facts, sizes) for column, rows in every.items()}


def _scored(column: Column, compressed: pd.DataFrame | None) -> pd.DataFrame:
    """The scored blocks of a column, and those of compressed vectors."""
    rows, scores = column.family, column.rows
    if compressed is not None:
        scores = pd.concat([scores, column.select(compressed)], ignore_index=True)
        rows = pd.concat([rows, compressed_of(column, compressed)], ignore_index=True)
    thresholds = [threshold_text(scores, column.task, row) for row in rows.to_dict("records")]
    return rows.assign(thresholds=thresholds)


def compressed_of(column: Column, compressed: pd.DataFrame) -> pd.DataFrame:
    """The scored blocks of a column with compressed vectors, in every pooling."""
    rows = column.select(compressed)
    return candidates(rows[(rows["metric"] == column.metric) & ~is_floor(rows)])


def _with_costs(
    rows: pd.DataFrame, costs: pd.DataFrame, facts: Mapping[str, Facts], sizes: Mapping[Vector, float]
) -> pd.DataFrame:
    rows = with_costs(rows, costs)
    known = [facts_about(name, facts) for name in rows["backbone"]]
    places = zip(known, rows["layer"], rows["depth"], strict=True)
    guesses = [each.costs_at(layer, depth) for each, layer, depth in places]
    guessed = pd.DataFrame(guesses, rows.index, ["parameters", "dim"], dtype=float)
    rows = rows.assign(licence=[each.licence or "unknown" for each in known]).fillna(guessed)
    vectors = zip(*(rows[name].tolist() for name in (*VECTOR, "dim")), strict=True)
    return rows.assign(bytes=[sizes.get((*key,), FLOAT32 * dim) for *key, dim in vectors])[CANDIDATE]


def spared(rows: pd.DataFrame, max_ms: float) -> "pd.Series[bool]":
    """Candidates that a limit of time would leave out, but whose times other work disturbed."""
    return ~(rows["ms"] <= max_ms) & rows["disturbed"].eq(other=True)


def within(
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
        refused[words] = beyond & ~spared(rows, most) if name == "ms" else beyond
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
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        all_of = f", all of {', '.join([*names[:MOST_NAMED], *more])}" if names else ""
        out = beyond.groupby(places).all()  # in every pooling
        if out.all() and len(rows):
            sentences.append(f"{words} leaves out all {len(out)} {what}")
        elif out.any():
            sentences.append(f"{words} leaves out {out.sum()} of {len(out)} {what}{all_of}")
    rows = rows[keep].sort_values(["value", "bytes"], ascending=[False, True], kind="stable")
    return rows.drop_duplicates(["backbone", "layer"]).sort_index().reset_index(drop=True), sentences
