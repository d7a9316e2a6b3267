"""The section on layers chosen without labels: what they lose, and whether any criterion beats two rules."""

from collections.abc import Callable, Sequence

import pandas as pd

from leaderboards.board import Board
from leaderboards.display import fixed, ranges_text
from leaderboards.scores import label_free
from leaderboards.scores.column import Column
from leaderboards.scores.label_free import RULES, TESTED, Beaten, Mean, Named
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
    choices = label_free.choices_without_labels(board)
    if not choices:
        return []
    columns = tuple(dict.fromkeys(choice.column for choice in choices))
    count = len({choice.backbone for choice in choices})
    tests = label_free.against_rules(choices)
    criteria = [criterion.metric for criterion in label_free.CRITERIA]
    regrets = _means(choices, columns, label_free.mean_regret, [*RULES, *criteria])
    correlations = _means(choices, columns, label_free.mean_correlation, criteria)
    least = fixed(min(1.0, len(tests) / 2**count), 3)
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
        said(BESIDE, count=str(count), least=least),
        Table(pd.DataFrame([_test_row(test) for test in tests]), caption="Criteria beside the rules"),
    ]
    for column in columns:
        layers = _layer_table(board, [choice for choice in choices if choice.column == column])
        table = Table(layers, caption=f"Regret of each backbone: {column.heading}")
        blocks += [Heading(3, f"Chosen without labels: {column.heading}"), said(LAYERS), table]
    return blocks


def _verdict(tests: Sequence[Beaten], count: int) -> Text:
    if beating := [test.criterion for test in tests if test.shown]:
        return said(BEATS, level=fixed(label_free.LEVEL, 2), names=", ".join(beating))
    lower = ", ".join(test.criterion for test in tests if test.lower)
    return said(NONE, lower=LOWER.format(names=lower, count=count) if lower else NOT_LOWER)


def _in_columns(choices: Sequence[Named], columns: Sequence[Column]) -> Text:
    """Criteria that lose less than both rules in single columns; no words where there are no several."""
    texts = []
    for column in columns:
        regrets = {by: label_free.mean_regret(choices, by, column).value for by in (*RULES, *TESTED)}
        least = min(regrets[rule] for rule in RULES)
        if lower := [by for by in TESTED if regrets[by] < least]:
            texts.append(f"{column.heading}: {', '.join(lower)}")
    return said(IN_COLUMNS, columns="; ".join(texts)) if texts and len(columns) > 1 else Text(())


def _means(
    choices: Sequence[Named],
    columns: Sequence[Column],
    mean: Callable[[Sequence[Named], str, Column | None], Mean],
    names: Sequence[str],
) -> pd.DataFrame:
    """A mean over backbones: a row a rule or criterion, a column a column of scores, and all of them."""
    headed = [*((column.heading, column) for column in columns), *([(ALL, None)] if len(columns) > 1 else [])]
    cells = ({name: _text(mean(choices, by, column)) for name, column in headed} for by in names)
    return pd.DataFrame([{BY: by} | row for by, row in zip(names, cells, strict=True)])


def _test_row(test: Beaten) -> dict[str, str]:
    less = {f"less {rule}": _text(mean) for rule, mean in test.less.items()}
    return {BY: test.criterion, **less, "p": fixed(test.p, 3)}


def _layer_table(board: Board, choices: Sequence[Named]) -> pd.DataFrame:
    """Regret and layers by backbone, a column a rule or criterion; empty where none is named."""
    cells: dict[str, dict[str, str]] = {}
    for choice in choices:
        text = f"{fixed(choice.regret, 1)} ({ranges_text([*choice.layers])})" if choice.layers else ""
        cells.setdefault(choice.backbone, {})[choice.by] = text
    order = dict.fromkeys(choice.by for choice in choices)
    body = [
        {"backbone": backbone.label} | {by: texts[by] for by in order if by in texts}
        for backbone in board.backbones
        if (texts := cells.get(backbone.name))
    ]
    return pd.DataFrame(body)


def _text(mean: Mean) -> str:
    text, reach = fixed(mean.value, 2), fixed(mean.reach, 2)
    return f"{text} ± {reach}" if text and reach else text
