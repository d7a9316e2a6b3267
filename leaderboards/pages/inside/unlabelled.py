"""The section on layers chosen without labels: what they lose, and whether any criterion beats two rules."""

from collections.abc import Callable, Sequence

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed, ranges_text
from leaderboards.scores.column import Column
from leaderboards.scores.label_free import (
    CRITERIA,
    LEVEL,
    RULES,
    TESTED,
    Beaten,
    Mean,
    Named,
    against_rules,
    choices_without_labels,
    mean_correlation,
    mean_regret,
)
from tasks.blocks import Block, Heading, Table, Text, said

READ = """\
Whoever has no labels has to name a layer by something else. **Regret** is the best score of all layers less
that of the layer that is named, in points of the score: 0 is the best choice. Two rules look at nothing:
`last` takes the last block, `two thirds` the one at two thirds of the depth. Criteria are those of
`label-free`: the layer with the highest number is named, by `spectrum-decay` that nearest to 1; of equal
layers the mean score counts. `cka-to-last` and `neighbours-to-last` compare with the last block and so name
it, always: only their rank correlation says something of its own."""

HOW = """\
Criteria are of the images of the scores where there are some, else of those that `label-free` looked at; of
the class token for scores of it, for all others of the mean of the patch tokens. ± is half a 95 % interval of
the mean over {count} trained backbones, as if they were drawn from many like them. The best layer is known
from the items that score it: any choice keeps some regret."""

CORRELATED = """\
Rank correlation over layers (Spearman; mean over backbones) of what a criterion likes and the score: 1 where
it orders layers as the score does, -1 where the other way round."""

BESIDE = """\
Every criterion beside the rules, over all columns together: its regret less the rule's, in points, below 0
where it loses less. p: that it loses less than both by chance alone, by turning the signs of the backbones'
differences, adjusted for all criteria (Holm); {count} backbones can give {least} at least."""

BEATS = "**Beating both rules**, over all columns together (p below {level}): {names}."
NONE = "**No criterion beats both rules**, `last` and `two thirds`, over all columns together. {lower}"
LOWER = (
    "A lower mean regret than both have {names}, which {count} backbones do not show to be more than chance."
)
NOT_LOWER = "None has a lower mean regret than both."
IN_COLUMNS = "In single columns, which are not tested, these have a lower mean regret than both: {columns}."

LAYERS = "Regret of each backbone, with the layer that is named in brackets; empty where none is:"

BY = "named by"
ALL = "all together"


def unlabelled_blocks(board: Board) -> list[Block]:
    """The section; nothing without criteria and scores of the same backbones."""
    named = choices_without_labels(board)
    if not named:
        return []
    columns = tuple(dict.fromkeys(one.column for one in named))
    count = len({one.backbone for one in named})
    beside = against_rules(named)
    criteria = tuple(one.metric for one in CRITERIA)
    regrets = _means(named, columns, mean_regret, (*RULES, *criteria))
    correlations = _means(named, columns, mean_correlation, criteria)
    least = fixed(min(1.0, len(beside) / 2**count), 3)
    blocks: list[Block] = [
        Heading(2, "Layers chosen without labels"),
        said(READ),
        said(HOW, count=str(count)),
        _verdict(beside, count),
        said("Regret, mean over backbones:"),
        Table(regrets, caption="Mean regret of layers chosen without labels"),
        _in_columns(named, columns),
        said(CORRELATED),
        Table(correlations, caption="Mean rank correlation of criteria and scores over layers"),
        said(BESIDE, count=str(count), least=least),
        Table(_beside(beside), caption="Criteria beside the rules"),
    ]
    for column in columns:
        own = [one for one in named if one.column == column]
        blocks += [
            Heading(3, f"Chosen without labels: {column.heading}"),
            said(LAYERS),
            Table(_layers(board, own), caption=f"Regret of each backbone: {column.heading}"),
        ]
    return blocks


def _verdict(beside: Sequence[Beaten], count: int) -> Text:
    """Which criterion beats the rules, or that none does."""
    shown = [one.criterion for one in beside if one.shown]
    if shown:
        return said(BEATS, level=fixed(LEVEL, 2), names=", ".join(shown))
    lower = [one.criterion for one in beside if one.lower]
    words = LOWER.format(names=", ".join(lower), count=count) if lower else NOT_LOWER
    return said(NONE, lower=words)


def _in_columns(named: Sequence[Named], columns: Sequence[Column]) -> Text:
    """Criteria that lose less than both rules in single columns; no words where there are no several."""
    found = []
    for column in columns:
        rules = [mean_regret(named, rule, column).value for rule in RULES]
        lower = [by for by in TESTED if all(mean_regret(named, by, column).value < value for value in rules)]
        found += [f"{column.heading}: {', '.join(lower)}"] if lower else []
    return said(IN_COLUMNS, columns="; ".join(found)) if found and len(columns) > 1 else Text(())


def _means(
    named: Sequence[Named],
    columns: Sequence[Column],
    mean: Callable[[Sequence[Named], str, Column | None], Mean],
    names: Sequence[str],
) -> pd.DataFrame:
    """A mean over backbones: a row a rule or criterion, a column a column of scores, and all of them."""
    body = []
    for by in names:
        cells = {column.heading: mean(named, by, column) for column in columns}
        cells |= {ALL: mean(named, by, None)} if len(columns) > 1 else {}
        body.append({BY: by} | {name: _text(cell) for name, cell in cells.items()})
    return pd.DataFrame(body)


def _beside(beside: Sequence[Beaten]) -> pd.DataFrame:
    """A row a criterion: its regret less each rule's, and p."""
    body = []
    for one in beside:
        less = {f"less {rule}": _text(mean) for rule, mean in one.less.items()}
        body.append({BY: one.criterion} | less | {"p": fixed(one.p, 3)})
    return pd.DataFrame(body)


def _layers(board: Board, named: Sequence[Named]) -> pd.DataFrame:
    """Regret and layer by backbone, a column a rule or criterion."""
    cells = {(one.backbone, one.by): one for one in named}
    ways = tuple(dict.fromkeys(one.by for one in named))
    there = {one.backbone for one in named}
    shown = [one for one in board.backbones if one.name in there]
    body = [
        {"backbone": one.label} | {by: _cell(cells[one.name, by]) for by in ways if (one.name, by) in cells}
        for one in shown
    ]
    return pd.DataFrame(body)


def _cell(one: Named) -> str:
    """Regret and layers; "" where none is named."""
    return f"{fixed(one.regret, 1)} ({ranges_text([*one.layers])})" if one.layers else ""


def _text(mean: Mean) -> str:
    """A mean and half its interval."""
    text, reach = fixed(mean.value, 2), fixed(mean.reach, 2)
    return f"{text} ± {reach}" if text and reach else text
