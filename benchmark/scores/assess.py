"""What the items of a task's outcomes say about its scores: intervals of all, choices among the blocks."""

from collections.abc import Mapping, Sequence

from leaderboards.records.items import Place
from tasks.base import Items, LayerOutcome
from tasks.uncertainty import Assessment, assess, intervals_of
from zoo.spec import stands_for_set

Assessments = Mapping[tuple[Place, str], Assessment]
"""Assessment of each place and metric."""


def place_of(one: LayerOutcome) -> Place:
    """Layer, tap and pooling of an outcome."""
    return one.layer.index, one.layer.record_tap, one.pooling


def is_choice(tap: str) -> bool:
    """Whether a best one is chosen among such places: blocks, or sets of them, which are scored apart."""
    return tap == "block" or stands_for_set(tap)


def measured_items(outcomes: Sequence[LayerOutcome]) -> dict[Place, Items]:
    """Items of each place that has scores."""
    return {place_of(one): one.outcome.items for one in outcomes if one.outcome.items is not None}


def assess_outcomes(outcomes: Sequence[LayerOutcome], primary: str | None) -> Assessments:
    """Intervals of all scores; for the primary metric also what the blocks 1..depth are among each other.

    Args:
        outcomes: Of one backbone and task, every layer and pooling.
        primary: The metric that the leaderboard shows; None where no layer is chosen.
    """
    items = measured_items(outcomes)
    found: dict[tuple[Place, str], Assessment] = {}
    for pooling in dict.fromkeys(place[2] for place in items):
        places = [place for place in items if place[2] == pooling]
        layers = [items[place] for place in places]
        for metric, ends in intervals_of(layers).items():
            found |= {
                (place, metric): Assessment(low, high)
                for place, (low, high) in zip(places, ends, strict=True)
            }
        blocks = [row for row, place in enumerate(places) if place[0] > 0 and is_choice(place[1])]
        if blocks and primary is not None and primary in layers[0].statistics:
            chosen = assess([layers[row] for row in blocks], primary)
            for row, choice in zip(blocks, chosen, strict=True):
                low, high = found[places[row], primary].low, found[places[row], primary].high
                found[places[row], primary] = Assessment(low, high, *choice)
    return found
