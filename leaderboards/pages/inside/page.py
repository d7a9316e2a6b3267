"""A suite's page of analyses: what its backbones do inside, which ranks none of them."""

from collections.abc import Callable
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from leaderboards.board import Board
from leaderboards.display import page_name, pooling_name, pooling_rank, task_display
from leaderboards.pages.inside import tables
from leaderboards.pages.inside.unlabelled import unlabelled_blocks
from leaderboards.records.files import scored_path, task_key
from leaderboards.scores import frames
from leaderboards.scores.frames import Analysis, BoardBackbone, backbones_of
from leaderboards.sections.gaps import empty_analyses, gap_blocks
from leaderboards.sections.provenance import partial_line, provenance_blocks, units_text
from tasks.analyses.drawings.evidence import Array, Evidence, backbone_points, choose, matching
from tasks.blocks import Block, Heading, Numbers, Page, Plot, Table, said, slug
from zoo.references import find_object

INSIDE_NOTE = """\
These numbers describe what happens inside the backbones, layer by layer: where they look, what they pass on.
They **describe and do not rank**: a higher number is not better than a lower one, and none of them counts for
the leaderboard. ± is half the width of a 95 % interval: other images of the same kind would give a
somewhat different number. Layers count from 1; an empty cell is a missing number, not a zero, and the last
section says why it is missing."""

RANGES = "The other metrics, each from its lowest layer to its highest, layers in brackets:"
HEADS = "The numbers of single attention heads are in the table of all numbers and in figures."
NOTHING = "Nothing could be measured; the last section says why."

TOKENS = {
    "cls": "class token",
    "patch": "patch tokens",
    "mean": "mean of the patch tokens",
    "all": "all tokens",
    "token": "single tokens",
    "interior": "patch tokens off the border",
    "border": "patch tokens on the border",
    "filters": "first filters",
    "positions": "position embeddings",
}  # what an analysis looks from, in words

PROBES = ("fewshot", "linear")  # tasks whose scores are drawn

PROBED = """\
How well a probe reads the class in each block, by what it reads: the class token, the mean of the patch
tokens, the mean of both, or one patch token (after Raghu et al., NeurIPS 2021, figure 11). These are scores
of the leaderboard, which has their table; one patch token is tested on other images than the rest, so compare
how the lines go, not how high they are."""


def inside_page(board: Board) -> Page:
    """The analyses of one suite, which has some; tasks that rank are only drawn."""
    records, backbones = board.analysed, backbones_of(board.records)
    blocks: list[Block] = [said(INSIDE_NOTE)]
    for analysis in frames.analyses_of(records):
        blocks += _analysis_blocks(analysis, analysis.rows(records), backbones, board.arrays)
    blocks += _probe_blocks(board.measured, records, backbones)
    blocks += unlabelled_blocks(board)
    name = page_name(board.suite, "inside")
    blocks += provenance_blocks(board, records, Numbers(tables.inside_frame(records), name))
    blocks += gap_blocks(empty_analyses(board, records))
    return Page(name, f"Inside the backbones: {board.suite}", tuple(blocks))


def evidence_of(
    analysis: Analysis, rows: pd.DataFrame, known: tuple[BoardBackbone, ...], arrays: Path | None
) -> Evidence:
    """What an analysis, whose records are those rows, leaves to draw.

    ``known`` are all backbones in the order of tables, ``arrays`` is the folder of arrays of the records'
    run; None where it is not known.
    """
    key = task_key(analysis.task, analysis.dataset, analysis.protocol)

    def load(backbones: tuple[str, ...], name: str) -> Array | None:
        if arrays is None:
            return None
        try:
            with np.load(arrays / scored_path(key, *backbones, ending="npz")) as archive:
                return archive[name]  # type: ignore[no-any-return]
        except (OSError, ValueError, KeyError, BadZipFile):
            return None

    there = frames.measured(rows)
    title = f"{analysis.task} on {analysis.place} ({analysis.protocol})"
    file = f"{key}.{analysis.data}" if analysis.apart else key
    alone, pairs = there[there["other"] == ""], there[there["other"] != ""]
    return Evidence(analysis.metrics, title, file, alone, pairs, known, load)


def _analysis_blocks(
    analysis: Analysis, rows: pd.DataFrame, known: tuple[BoardBackbone, ...], arrays: Path | None
) -> list[Block]:
    """The section of one analysis: the question, the number, figures, tables."""
    evidence = evidence_of(analysis, rows, known, arrays)
    entry = task_display(analysis.task)
    blocks: list[Block] = [Heading(2, evidence.title)]
    if entry.asks:
        blocks.append(said("The question: {asks}", asks=entry.asks))
    if entry.measures:
        blocks.append(said("The number: {measures}.", measures=entry.measures))
    if evidence.rows.empty and evidence.pairs.empty:
        return [*blocks, said(NOTHING), partial_line(rows)]
    if entry.drawing:
        draw: Callable[[Evidence], list[Block]] = find_object(entry.drawing)  # type: ignore[assignment]
        blocks += draw(evidence)
    if (evidence.rows["head"] >= 0).any():
        blocks.append(said(HEADS))
    layers = evidence.rows[evidence.rows["layer"] >= 0]
    for pooling, tap in frames.views_of(layers):
        blocks += _view_blocks(layers, evidence, pooling, tap, drawn=bool(entry.drawing))
    whole = tables.whole_table(evidence.rows, analysis.metrics)
    if len(whole):
        caption = f"{evidence.title}: each backbone as a whole"
        blocks += [said("Numbers of each backbone as a whole:"), Table(whole, caption=caption)]
    pairs = tables.pairs_table(evidence.pairs, analysis.metrics)
    if len(pairs):
        caption = f"{evidence.title}: backbones compared"
        blocks += [said("Numbers of two backbones, each as a whole:"), Table(pairs, left=2, caption=caption)]
    return [*blocks, partial_line(rows)]


def _view_blocks(
    rows: pd.DataFrame, evidence: Evidence, pooling: str, tap: str, *, drawn: bool
) -> list[Block]:
    """Tables of what an analysis says of one view, with its lines and heads where nothing else is drawn."""
    primary, others = evidence.metrics[0], evidence.metrics[1:]
    whole = rows[(rows["head"] == -1) & (rows["pooling"] == pooling) & (rows["tap"] == tap)]
    main = whole[whole["metric"] == primary]
    tokens, comma, transform = pooling.partition(", ")  # what was done to tokens stands behind them
    words = f"{TOKENS.get(tokens, tokens)}{comma}{transform}, {tap}"
    title, what = f"{evidence.title}, {words}", f"{pooling}-{tap}"
    blocks: list[Block] = [Heading(3, f"{primary}: {words}" if len(main) else f"Other metrics: {words}")]
    if len(main):
        if not drawn:
            blocks += evidence.depth_panels({"": main}, f"{primary}, {words}", primary, what)
        table = Table(tables.layers_table(main), caption=f"{title}: {primary} of every layer")
        blocks += [said("Every layer{units}:", units=units_text(main)), table]
    further = tuple(metric for metric in others if (whole["metric"] == metric).any())
    if further:
        ranges = tables.ranges_table(whole[whole["metric"].isin(further)], further)
        blocks += [said(RANGES), Table(ranges, caption=f"{title}: lowest and highest layer")]
    if not drawn:
        blocks += evidence.head_points(primary, f"{what}-heads", pooling=pooling, tap=tap)
    return blocks


def _probe_blocks(
    ranked: pd.DataFrame, analyses: pd.DataFrame, known: tuple[BoardBackbone, ...]
) -> list[Block]:
    """A section on probes, which are scores of the leaderboard: over depth by what is read.

    Source: Raghu et al., NeurIPS 2021, figures 11 and 13.
    """
    blocks: list[Block] = []
    rows = ranked[ranked["task"].isin(PROBES) & (ranked["tap"] == "block") & ~frames.is_floor(ranked)]
    # the primary metric in every pooling, not only in that of tables
    rows = rows[rows["metric"].isin(rows.loc[rows["primary"].astype(bool), "metric"]) & rows["value"].notna()]
    keys = set(zip(rows["task"], rows["dataset"], rows["protocol"], strict=True))
    for task, dataset, protocol in sorted(keys):
        scores = matching(rows, {"task": task, "dataset": dataset, "protocol": protocol})
        metric = min(scores["metric"])
        series = {
            pooling_name(pooling): scores[(scores["pooling"] == pooling) & (scores["metric"] == metric)]
            for pooling in sorted(set(scores["pooling"]), key=pooling_rank)
        }
        if task == PROBES[0]:
            tokens = analyses[(analyses["task"] == "token-probes") & analyses["value"].notna()]
            tokens = tokens[tokens["backbone"].isin(scores["backbone"])]
            tokens = choose(tokens, "fewshot-10", pooling="token", dataset=dataset, protocol=protocol)
            series |= {"one patch token": tokens} if len(tokens) else {}
        title = f"Accuracy by what is read: {task} on {dataset} ({protocol})"
        points, name = backbone_points(known, series), slug(f"{task}.{dataset}.{protocol}.poolings")
        blocks.append(Plot(points, "lines", title, "block", f"{metric}, %", name=name))
    return [Heading(2, "Accuracy of probes over depth"), said(PROBED), *blocks] if blocks else []
