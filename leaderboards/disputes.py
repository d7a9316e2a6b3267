"""Published numbers of the same thing that disagree with each other, as sentences."""

from collections.abc import Hashable, Sequence
from itertools import combinations

from leaderboards.display import fixed
from leaderboards.literature import Published

ROUNDING = 1e-9


def disputes(published: Sequence[Published]) -> tuple[str, ...]:
    """A sentence for each group of numbers of the same that disagree, in the order given.

    Of the same are numbers of one backbone, task and dataset that say so (`Published.claim`), and those that
    one run could be compared with. Two numbers disagree where they differ by more than their printed digits
    leave open.
    """
    groups: dict[Hashable, list[Published]] = {}
    for number in published:
        if number.claim or number.comparable:
            groups.setdefault(_subject(number), []).append(number)
    return tuple(_sentence(group) for group in groups.values() if _disagree(group))


def _subject(number: Published) -> Hashable:
    """What a number is of."""
    task = (number.backbone, number.task, number.dataset)
    if number.claim:
        return (*task, number.claim)
    how = (number.protocol, number.transform, number.input_size)
    # of the best layer sources may name different ones: that is part of what disagrees
    layer = number.layer if number.rule == "layer" else None
    return (*task, *how, number.metric, number.pooling, number.rule, layer)


def _disagree(group: Sequence[Published]) -> bool:
    """Whether any two numbers are further apart than their rounding."""
    return any(
        abs(number.value - other.value) > number.half_unit + other.half_unit + ROUNDING
        for number, other in combinations(group, 2)
    )


def _sentence(group: Sequence[Published]) -> str:
    """Every number of a group with its source, and with its metric where that is not the same for all."""
    first, metrics = group[0], {number.metric for number in group}
    named = len(metrics) > 1
    what = first.task if named else f"{first.task} {first.metric}"
    numbers = []
    for number in group:
        metric = f" ({number.metric})" if named else ""
        hand = " (second hand)" if number.second_hand else ""
        value = fixed(number.value, number.decimals)
        numbers.append(f"{value}{metric} by {number.source}, {number.table}{hand}")
    how = f"{first.dataset} ({first.claim or first.protocol})"
    return f"{first.backbone}, {what}, {how}: published numbers disagree: {', '.join(numbers)}."
