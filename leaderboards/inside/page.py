"""The page of analyses of a suite: what its backbones do inside, without ranking, and first the answers."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Bullets, Heading, Link, Page, Plot, Table, Text, said
from layerboard.leaderboards.blocks.display import fixed, number_text, pooling_rank
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import INTERVAL, by_layer
from layerboard.leaderboards.inside.drawings import attention, tokens
from layerboard.leaderboards.inside.evidence import TOKENS, Evidence, among
from layerboard.leaderboards.sections.provenance import partial_line, provenance_blocks, units_text
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.tasks.framework.registry import Headline
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer

INSIDE_NOTE = """\
Analyses of each layer: attention maps, attention distance, overlap with objects, skip-connection norms,
receptive fields. They **describe and do not rank**: higher is not better, and none of them counts for the
leaderboard. ± is the 95 % margin of error, or both ends are given. Layers count from 1; an empty cell is a
missing number, not a zero, and the last section gives the reason."""


def inside_page(board: Board) -> Page:
    """The page of analyses of one suite, which must have some; ranking tasks are only drawn."""
    title, analyses = f"Inside the backbones: {board.suite}", board.analyses
    evidence = [Evidence(analysis, analyses.backbones, analyses.arrays) for analysis in analyses.groups]
    further = provenance_blocks(analyses)
    titles = [block.text for block in further if isinstance(block, Heading) and block.level == 2]
    parts: list[Block] = [said(INSIDE_NOTE), *glance_blocks(evidence, titles)]
    parts += [block for each in evidence for block in analysis_blocks(each)]
    nothing = "{title}: 0 in every block of every backbone."
    shown = (
        said(nothing, title=block.title)
        if isinstance(block, Plot) and [*block.frame["y"].dropna().unique()] == [0]
        else block
        for block in (*parts, *further)
    )
    return Page(analyses.page, title, tuple(shown))


READ = "Each analysis with its question, and the lowest and highest answer over the backbones:"

Answers = dict[str, tuple[float, str]]  # by label of the backbone: a number, and its layer


def glance_blocks(analyses: Sequence[Evidence], further: Sequence[str]) -> list[Block]:
    """The questions of all analyses with their answers, links to further sections, and a table of answers."""
    items: list[str | Text] = []
    rows: list[dict[str, str]] = []
    tasks = [evidence.analysis.task for evidence in analyses]
    for evidence in analyses:
        task, dataset = evidence.analysis.task, evidence.analysis.dataset_name
        where = dataset if tasks.count(task) > 1 else ""
        numbers = {each: _answers(evidence, each) for each in evidence.entry.headlines}
        extremes = [_extremes(headline, answers) for headline, answers in numbers.items() if answers]
        more = " ".join(filter(None, [evidence.entry.asks, *extremes]))
        items.append(_linked(evidence.title, f": {more}" if more else ""))
        for headline, answers in numbers.items():
            cells = {label: number_text(value) + layer for label, (value, layer) in answers.items()}
            rows += [{"number": ", ".join(filter(None, [headline.title, where]))} | cells] if cells else []
    items += [_linked(title) for title in further]
    parts: list[Block] = [Heading(2, "At a glance"), said(READ), Bullets(tuple(items))]
    if not rows:
        return parts
    labels = [each.label for each in analyses[0].known if any(each.label in row for row in rows)]
    table = pd.DataFrame(rows, columns=["number", *labels]).fillna("")
    return [*parts, Table(table, caption="These numbers of every backbone", folded=True)]


def _linked(title: str, more: str = "") -> Text:
    """The title of a section as a link to it, followed by ``more``."""
    # its anchor, as GitHub and Markdown sites derive it from the words
    anchor = "#" + re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
    return Text(tuple(filter(None, (Link(title, anchor), more))))


def _answers(evidence: Evidence, headline: Headline) -> Answers:
    """The headline number of each backbone that has it, with its block if the headline looks for one."""
    rows = evidence.rows[(evidence.rows["metric"] == headline.metric) & (evidence.rows["head"] == -1)]
    rows = rows[(rows["pooling"] == headline.pooling) | (headline.pooling == "")]
    rows = rows[(rows["tap"] == headline.tap) | (headline.tap == "")]
    rows = rows[(rows["layer"] < 0) == (headline.block == "whole")]
    answers = {}
    for backbone in among(evidence.known, rows):
        numbers = by_layer(rows, backbone.name)
        lowest = min(numbers, key=lambda number: number[1])
        layer, value = {"lowest": lowest, "first": numbers[0]}.get(headline.block, numbers[-1])
        answers[backbone.label] = value, f" ({layer})" if headline.block == "lowest" else ""
    return answers


def _extremes(headline: Headline, answers: Answers) -> str:
    """``Title: 0.5 (a) to 0.9 (b).``, or the one number that all share."""
    low, high = (end(answers, key=lambda label: answers[label][0]) for end in (min, max))
    same = low == high and len(answers) > 1
    ends = [f"{number_text(answers[label][0])} ({'all' if same else label})" for label in {low: 0, high: 0}]
    title = headline.title[0].upper() + headline.title[1:]
    return f"{title}: {' to '.join(ends)}."


RANGES = "Lowest and highest of the other metrics (layers in brackets)"
WHOLE, PAIRS = "Numbers of each backbone as a whole", "Numbers of two backbones, each as a whole"
HEADS = "The numbers of single attention heads are in the CSV file beside this page."
NOTHING = "Nothing could be measured; the last section says why."

# the drawing of each analysis that has one of its own; others have a line per backbone, a point per head
DRAWINGS: Mapping[str, Callable[[Evidence], list[Block]]] = {
    "attention-maps": attention.draw_maps,
    "attention-distance": attention.draw_distance,
    "attention-shares": attention.draw_shares,
    "localisation": tokens.draw_localisation,
    "position-audit": tokens.draw_position,
    "saliency": attention.draw_saliency,
    "receptive-field": tokens.draw_fields,
    "inspect": tokens.draw_weights,
    "residuals": tokens.draw_residuals,
    "residual-cka": tokens.draw_similarity,
    "locality": attention.draw_locality,
    "token-probes": tokens.draw_tokens,
    "label-free": tokens.draw_label_free,
}

Labels = Mapping[str, str]  # of the backbones of a page by name, in table order


def analysis_blocks(evidence: Evidence) -> list[Block]:
    """The section of one analysis: the question, the number, figures, tables."""
    entry = evidence.entry
    measured = len(evidence.rows) or len(evidence.pairs)
    return [
        Heading(2, evidence.title),
        said("**{asks}**" if entry.asks else "", asks=entry.asks),
        said("Metric: {measures}." if entry.measures else "", measures=entry.measures),
        *(_number_blocks(evidence) if measured else [said(NOTHING)]),
        partial_line(evidence.analysis.rows),
    ]


def _number_blocks(evidence: Evidence) -> list[Block]:
    """Figures and tables of an analysis that has numbers."""
    analysis, rows, labels = evidence.analysis, evidence.rows, evidence.labels
    draw = DRAWINGS.get(analysis.task)
    blocks = draw(evidence) if draw else []
    layers = rows[rows["layer"] >= 0]
    views = set(zip(layers["pooling"], layers["tap"], strict=True))
    for pooling, tap in sorted(views, key=lambda view: (pooling_rank(view[0]), Layer(1, view[1]).place)):
        blocks += _view_blocks(layers, evidence, pooling, tap, drawn=draw is not None)
    whole = _whole_table(rows, labels, analysis.metrics)
    blocks += [Table(whole, caption=WHOLE, folded=True)] if len(whole) else []
    pairs = _pairs_table(evidence.pairs, labels, analysis.metrics)
    blocks += [Table(pairs, left=2, caption=PAIRS, folded=True)] if len(pairs) else []
    return [*blocks, said(HEADS if (rows["head"] >= 0).any() else "")]


def _view_blocks(
    rows: pd.DataFrame, evidence: Evidence, pooling: str, tap: str, *, drawn: bool
) -> list[Block]:
    """Tables of an analysis for one view, with lines and heads unless something else is drawn."""
    (primary, *others), labels = evidence.analysis.metrics, evidence.labels
    whole = rows[(rows["head"] == -1) & (rows["pooling"] == pooling) & (rows["tap"] == tap)]
    main = whole[whole["metric"] == primary]
    words, what = f"{TOKENS.get(pooling, pooling)}, {tap}", f"{pooling}-{tap}"
    blocks: list[Block] = []
    if not drawn:
        blocks += evidence.depth_panels({"": main}, f"{primary}, {words}", primary, what) if len(main) else []
        blocks += evidence.head_points(primary, f"{what}-heads", pooling=pooling, tap=tap)
    if len(main):
        caption = f"{primary} of every layer: {words}{units_text(main)}"
        blocks.append(Table(layers_table(main, labels), caption=caption, folded=True))
    further = tuple(metric for metric in others if (whole["metric"] == metric).any())
    if further:
        ranges = ranges_table(whole[whole["metric"].isin(further)], labels, further)
        blocks.append(Table(ranges, caption=f"{RANGES}: {words}", folded=True))
    return blocks


def layers_table(rows: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Numbers of one metric and view in every layer, with margins of error, as text; one row per backbone."""
    rows = rows.sort_values("layer", kind="stable")
    return _table(rows, labels, [str(layer) for layer in rows["layer"]])


def ranges_table(rows: pd.DataFrame, labels: Labels, metrics: tuple[str, ...]) -> pd.DataFrame:
    """The lowest and highest layer of each backbone and metric: ``0.112 (3) to 0.530 (12)``, as text."""
    cells = {}
    for (name, metric), part in rows.sort_values("layer", kind="stable").groupby(["backbone", "metric"]):
        values, layers = part["value"].tolist(), part["layer"].tolist()
        ends = (values.index(min(values)), values.index(max(values)))  # of equal ones the lower layer
        texts = [f"{number_text(values[at])} ({layers[at]})" for at in ends]
        cells[str(name), str(metric)] = " to ".join(dict.fromkeys(texts))
    return cell_table(labels, metrics, cells)


def _whole_table(rows: pd.DataFrame, labels: Labels, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Numbers of whole backbones, with margins of error; one row per backbone, no columns without numbers.

    Rows of layers and of single heads are left out. A metric that is measured on several kinds of tokens or
    taps has one column for each.
    """
    rows = rows[(rows["layer"] == WHOLE_BACKBONE.index) & (rows["head"] == -1)]
    views = list(zip(rows["metric"], rows["pooling"], rows["tap"], strict=True))
    ranks = [(metrics.index(metric), pooling_rank(pooling), tap) for metric, pooling, tap in views]
    order = sorted(range(len(rows)), key=ranks.__getitem__)
    several = Counter(metric for metric, *_ in set(views))
    names = [", ".join(views[row]) if several[views[row][0]] > 1 else views[row][0] for row in order]
    return _table(rows.iloc[order], labels, names)


def _pairs_table(rows: pd.DataFrame, labels: Labels, metrics: tuple[str, ...]) -> pd.DataFrame:
    """Numbers of pairs of backbones: a row per pair, a column per metric; no columns without numbers."""
    keys = zip(rows["backbone"], rows["other"], rows["metric"], strict=True)
    cells = dict(zip(keys, _texts(rows), strict=True))
    pairs = sorted({key[:2] for key in cells}, key=lambda pair: ([*labels].index(pair[0]), pair[1]))
    return pd.DataFrame(
        {"backbone": labels[first], "other": labels.get(second, second)}
        | {metric: cells.get((first, second, metric), "") for metric in metrics}
        for first, second in pairs
    )


def _table(rows: pd.DataFrame, labels: Labels, columns: Sequence[str]) -> pd.DataFrame:
    """Numbers as text, one row per backbone; ``columns`` gives the column of each row."""
    cells = dict(zip(zip(rows["backbone"], columns, strict=True), _texts(rows), strict=True))
    return cell_table(labels, columns, cells)


def _texts(rows: pd.DataFrame) -> list[str]:
    counts = rows["metric"].str.endswith(("-block", "-head", "phase-transition"))  # places, not amounts
    every = zip(rows[INTERVAL].astype(float).to_numpy().tolist(), counts, strict=True)
    return [fixed(value, 0) if count else number_text(value, *ends) for (value, *ends), count in every]
