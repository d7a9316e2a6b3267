"""The section of one analysis: its question, its figures and tables."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, said
from layerboard.leaderboards.blocks.display import fixed, number_text, pooling_rank
from layerboard.leaderboards.board.frames import INTERVAL
from layerboard.leaderboards.inside.drawings import attention, pixels, residuals, tokens
from layerboard.leaderboards.inside.evidence import TOKENS, Evidence
from layerboard.leaderboards.sections.provenance import partial_line, units_text
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.zoo.spec import WHOLE_BACKBONE, Layer

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
    "receptive-field": pixels.draw_fields,
    "inspect": pixels.draw_weights,
    "residuals": residuals.draw_residuals,
    "residual-cka": residuals.draw_similarity,
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
