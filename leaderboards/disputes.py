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

    Args:
        published: Numbers of any sources.
    """
    groups: dict[Hashable, list[Published]] = {}
    for one in published:
        if one.claim or one.comparable:
            groups.setdefault(_subject(one), []).append(one)
    return tuple(_sentence(group) for group in groups.values() if _disagree(group))


def _subject(one: Published) -> Hashable:
    """What a number is of."""
    place = (one.backbone, one.task, one.dataset)
    if one.claim:
        return (*place, one.claim)
    how = (one.protocol, one.transform, one.input_size)
    # of the best layer sources may name different ones: that is part of what disagrees
    return (*place, *how, one.metric, one.pooling, one.rule, one.layer if one.rule == "layer" else None)


def _disagree(group: Sequence[Published]) -> bool:
    """Whether any two numbers are further apart than their rounding."""
    return any(
        abs(one.value - other.value) > one.half_unit + other.half_unit + ROUNDING
        for one, other in combinations(group, 2)
    )


def _sentence(group: Sequence[Published]) -> str:
    """Every number of a group with its source."""
    first = group[0]
    metrics = {one.metric for one in group}
    what = f"{first.task} {first.metric}" if len(metrics) == 1 else first.task
    numbers = ", ".join(_number(one, named=len(metrics) > 1) for one in group)
    how = first.claim or first.protocol
    return f"{first.backbone}, {what}, {first.dataset} ({how}): published numbers disagree: {numbers}."


def _number(one: Published, *, named: bool) -> str:
    """A number with its metric, where that is not the same for all, and its source."""
    metric = f" ({one.metric})" if named else ""
    hand = " (second hand)" if one.second_hand else ""
    return f"{fixed(one.value, one.decimals)}{metric} by {one.source}, {one.table}{hand}"
