"""The section on layers chosen without labels: their regret, and whether any criterion beats two fixed rules.

A criterion of the analysis `label-free` chooses the layer with the highest value, or the value nearest to
what its paper calls good; two rules choose the last layer and that at two thirds of the depth without
looking.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Table, Text, said
from layerboard.leaderboards.blocks.display import fixed, ranges_text, spread_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import candidates
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.tasks.metrics.arrays import Floats, Integers
from layerboard.tasks.statistics.layer_choice import (
    below_zero,
    mean_reach,
    named_layers,
    rank_correlation,
    regret,
)
from layerboard.tasks.statistics.mcb import holm

TASK = "label-free"
LEVEL = 0.05  # p-value below which a criterion is said to beat the rules

# value that the source of each criterion calls good: the nearest layer is chosen, else the highest
CRITERIA: dict[str, float | None] = {
    "effective-rank": None,
    "rankme": None,
    "spectrum-decay": 1.0,
    "cka-to-last": None,
    "neighbours-to-last": None,
    "view-neighbours": None,
    "view-top1": None,
}
# criteria that are tested against the rules: those that do not always choose the last layer
TESTED = tuple(name for name in CRITERIA if not name.endswith("-to-last"))

RULES: dict[str, Callable[[int], int]] = {  # fixed rules: from number of blocks to block
    "last": lambda depth: depth,
    "two thirds": lambda depth: max(1, math.floor(depth * 2 / 3 + 0.5)),
}

READ = """\
Without labels a layer has to be chosen by a rule or a criterion. **Regret** is the score of the best layer
minus the score of the chosen one, in points: 0 is the best choice. Two fixed rules: `last` takes the last
block, `two thirds` the block at two thirds of the depth. The criteria of `label-free` choose the layer with
the highest value, `spectrum-decay` the one nearest to 1; ties count by their mean score. `cka-to-last` and
`neighbours-to-last` compare with the last block and always choose it: only their rank correlation is
informative."""

HOW = """\
Criteria are computed on the images of the scores if possible, else on those of `label-free`; on the class
token for scores of it, otherwise on the mean of the patch tokens. ± is the 95 % margin of error of the mean
over {count} trained backbones, taken as a random sample. The best layer is chosen on the test data, so any
other choice has some regret."""

CORRELATED = """\
Spearman rank correlation of criterion and score over layers, mean over backbones: 1 where the criterion
orders layers as the score does."""

BESIDE = """\
Regret of every criterion minus the regret of each rule, over all columns, in points: below 0 the criterion
is better. p: sign-flip test over backbones that it is better than both rules, corrected for all criteria
(Holm); with {count} backbones the smallest possible p is {least}."""

BEATS = "**Beating both rules**, over all columns together (p below {level}): {names}."
NONE = "**No criterion beats both rules**, `last` and `two thirds`, over all columns together. {lower}"
LOWER = "Lower mean regret than both, but with {count} backbones possibly by chance: {names}."
NOT_LOWER = "None has a lower mean regret than both."
IN_COLUMNS = "In single columns, which are not tested, these have a lower mean regret than both: {columns}."

LAYERS = "Regret of each backbone, with the layer that is named in brackets; empty where none is:"

BY = "named by"
ALL = "all together"

NAMED = ["column", "backbone", "by", "layers", "regret", "correlation"]
"""Columns of choices: layers, from 1, that a criterion or rule (``by``) chooses for a backbone and column.

Several layers are tied. ``regret`` is the best score of all layers minus their mean score, in points, NaN if
none is chosen; ``correlation`` is Spearman's of criterion and score over layers, NaN if it is undefined."""


@dataclass(frozen=True, slots=True)
class Beaten:
    """One criterion against the rules, over backbones, each of which contributes all of its columns together.

    ``less`` is, for each rule and backbone, the criterion's regret minus the rule's, in points, below 0 if
    the criterion is better; ``p`` is the p-value that both are below 0 by chance, corrected for all criteria
    (or NaN).
    """

    criterion: str
    less: dict[str, Floats]
    p: float

    @property
    def lower(self) -> bool:
        return all(mean_over_backbones(values) < 0 for values in self.less.values())


def unlabelled_blocks(board: Board) -> list[Block]:
    """The section; empty without criteria and scores of the same backbones."""
    choices = choices_without_labels(board)
    if choices.empty:
        return []
    columns, count = tuple(dict.fromkeys(choices["column"])), choices["backbone"].nunique()
    tests = against_rules(choices)
    regrets = _means(choices, columns, "regret", [*RULES, *CRITERIA])
    correlations = _means(choices, columns, "correlation", [*CRITERIA])
    tested = pd.DataFrame(
        {BY: test.criterion}
        | {f"less {rule}": _text(values) for rule, values in test.less.items()}
        | {"p": fixed(test.p, 3)}
        for test in tests
    )
    blocks: list[Block] = [
        Heading(2, "Layers chosen without labels"),
        said(READ),
        said(HOW, count=str(count)),
        _verdict(tests, count),
        said("Regret, mean over backbones:"),
        Table(regrets, caption="Mean regret of layers chosen without labels"),
        _in_columns(choices, columns),
        said(CORRELATED),
        Table(correlations, caption="Mean rank correlation of criteria and scores over layers"),
        said(BESIDE, count=str(count), least=fixed(min(1.0, len(tests) / 2**count), 3)),
        Table(tested, caption="Criteria beside the rules"),
    ]
    for column in columns:
        layers = _layer_table(board, choices[choices["column"] == column])
        table = Table(layers, caption=f"Regret of each backbone: {column.heading}")
        blocks += [Heading(3, f"Chosen without labels: {column.heading}"), said(LAYERS), table]
    return blocks


def _verdict(tests: Sequence[Beaten], count: int) -> Text:
    if beating := [test.criterion for test in tests if test.lower and test.p < LEVEL]:
        return said(BEATS, level=fixed(LEVEL, 2), names=", ".join(beating))
    lower = ", ".join(test.criterion for test in tests if test.lower)
    return said(NONE, lower=LOWER.format(names=lower, count=count) if lower else NOT_LOWER)


def _in_columns(choices: pd.DataFrame, columns: Sequence[Column]) -> Text:
    """Criteria with less regret than both rules in single columns; empty unless there are several columns."""
    texts = []
    for column in columns:
        regrets = {
            by: mean_over_backbones(by_backbone(choices, by, column=column)) for by in (*RULES, *TESTED)
        }
        if lower := [by for by in TESTED if regrets[by] < min(map(regrets.__getitem__, RULES))]:
            texts.append(f"{column.heading}: {', '.join(lower)}")
    return said(IN_COLUMNS, columns="; ".join(texts)) if texts and len(columns) > 1 else Text(())


def _means(
    choices: pd.DataFrame, columns: Sequence[Column], number: str, names: Sequence[str]
) -> pd.DataFrame:
    """Means over backbones: one row per rule or criterion, one column per column of scores and for all."""
    headed = [*((column.heading, column) for column in columns), *([(ALL, None)] if len(columns) > 1 else [])]
    return pd.DataFrame(
        {BY: by} | {name: _text(by_backbone(choices, by, number, column)) for name, column in headed}
        for by in names
    )


def _layer_table(board: Board, choices: pd.DataFrame) -> pd.DataFrame:
    """Regret and layers by backbone, one column per rule or criterion; empty if none is chosen."""
    cells = {
        (name, by): f"{fixed(lost, 1)} ({ranges_text([*layers])})" if layers else ""
        for _, name, by, layers, lost, _ in choices.itertuples(index=False, name=None)
    }
    return cell_table(board.labels, [*RULES, *CRITERIA], cells)


def _text(values: Floats) -> str:
    """The mean over backbones and half its 95 % interval, taking backbones as a random sample."""
    return spread_text(mean_over_backbones(values), mean_reach(values), 2)


def choices_without_labels(board: Board) -> pd.DataFrame:
    """The choices, columns `NAMED`, for every trained backbone and column with both scores and criteria.

    Candidates are the blocks from 1 on that have a score, in the pooling of the leaderboard. Criteria are
    those of the class token for scores of it, and of the mean of the patch tokens for all others. They are
    computed on the column's own images if possible, else on the first available ones.
    """
    homes = [group for group in board.analyses.groups if group.task == TASK]
    numbers = {home: candidates(home.rows) for home in homes}
    homes = [home for home in homes if len(numbers[home])]
    named: list[tuple[object, ...]] = []
    for column in board.columns if homes else ():
        home = min(homes, key=lambda home: (home.dataset != column.dataset, home.protocol != column.protocol))
        criteria = dict(iter(numbers[home].groupby("backbone")))
        for name, scores in column.candidates.groupby("backbone"):
            if name in criteria and scores["trained"].all():
                choices = _of_backbone(scores.sort_values("layer"), criteria[name])
                named += [(column, str(name), *choice) for choice in choices]
    return pd.DataFrame(named, columns=NAMED)


def _of_backbone(rows: pd.DataFrame, numbers: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    """What is chosen for one backbone in a column, rules first: columns `NAMED` from ``by`` on."""
    layers, scores, depth = rows["layer"].to_numpy(int), rows["value"].to_numpy(float), rows["depth"].max()

    def named(by: str, places: Integers, correlation: float) -> tuple[object, ...]:
        lost = regret(scores, places) if len(places) else math.nan
        return by, tuple(layers[places].tolist()), lost, correlation

    of_class = rows["pooling"].iloc[0] == "cls" and (numbers["pooling"] == "cls").any()
    numbers = numbers[numbers["pooling"] == ("cls" if of_class else "mean")]
    for rule, block in RULES.items():
        yield named(rule, np.flatnonzero(layers == block(int(depth))), math.nan)
    for criterion, good in CRITERIA.items():
        own = numbers[numbers["metric"] == criterion]
        by_layer = dict(zip(own["layer"].astype(int), own["value"].astype(float), strict=True))
        liking = np.array([by_layer.get(int(layer), math.nan) for layer in layers])
        if good is not None:
            liking = -np.abs(liking - good)
        yield named(criterion, named_layers(liking), rank_correlation(liking, scores))


def by_backbone(
    choices: pd.DataFrame, by: str, number: str = "regret", column: Column | None = None
) -> Floats:
    """``regret`` or ``correlation`` of a criterion or rule: each backbone's in a column, or its mean."""
    rows = choices[(choices["by"] == by) & ((choices["column"] == column) | (column is None))]
    return _means_of(rows.set_index("backbone")[number])


def mean_over_backbones(values: Floats) -> float:
    """The mean over backbones; NaN without any."""
    return float(values.mean()) if len(values) else math.nan


def against_rules(choices: pd.DataFrame) -> tuple[Beaten, ...]:
    """Every criterion that does not always choose the last layer, against both rules.

    Compared are choices for the same backbones and columns. A criterion beats the rules if it beats each of
    them, so the larger of the p-values counts (an intersection-union test); these are corrected for the
    number of criteria (Holm).
    """
    rows = choices.assign(heading=choices["column"].map(lambda column: column.heading))
    wide = rows.pivot_table("regret", ["backbone", "heading"], "by", dropna=False)
    less = {by: {rule: _means_of(wide[by] - wide[rule]) for rule in RULES} for by in TESTED}
    p = [np.max([below_zero(values) for values in less[by].values()]) for by in TESTED]  # NaN if one is
    adjusted = holm(np.array(p)).tolist()
    return tuple(Beaten(by, less[by], number) for by, number in zip(TESTED, adjusted, strict=True))


def _means_of(numbers: "pd.Series[float]") -> Floats:
    """The mean over columns of each backbone, ignoring NaN: [backbones], ordered by name."""
    return np.asarray(numbers.astype(float).groupby("backbone").mean().dropna(), np.float64)
