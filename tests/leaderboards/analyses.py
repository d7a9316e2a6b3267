"""Plausible records of an analysis of attention, without a run."""

from collections.abc import Mapping, Sequence

from layerboard.leaderboards.records.record import Record
from tests.leaderboards.builder import NAN, record, unsure

TASK = "attention-distance"
DISTANCE = {"task": TASK, "metric": TASK, "tap": "attention", "pooling": "patch", "split": "val"}
DISTANCE |= {"analysis": True}
PIXELS = {"metric": f"{TASK}-px", "primary": False}
RATIO = {"metric": f"{TASK}-ratio", "primary": False}
NO_ATTENTION = "a ConvNet has no attention"


def distances(heads: Sequence[Sequence[float]], half: float = 0.012, **changes) -> list[Record]:
    """Attention distances of a backbone: a row of heads a layer; their means have intervals."""
    found = []
    for layer, values in enumerate(heads, start=1):
        facts = DISTANCE | {"depth": len(heads), "layer": layer} | changes
        mean = sum(values) / len(values)
        for metric, scale in (({}, 1.0), (PIXELS, 56.0), (RATIO, 1 / 0.59)):
            whole = record(**facts | metric | {"value": mean * scale})
            found += unsure([whole], half * scale) if half else [whole]
            found += [
                record(**facts | metric | {"value": value * scale, "head": head})
                for head, value in enumerate(values)
            ]
    return found


def without_attention(depth: int = 2, **changes: object) -> list[Record]:
    """What an analysis says of a backbone that it cannot be asked of."""
    lacking = {"depth": depth, "value": NAN, "reason": NO_ATTENTION, "n": 0}
    facts: Mapping[str, object] = DISTANCE | {"backbone": "mini-resnet", "family": "ResNet"} | lacking
    return [record(**{**facts, "layer": layer, **changes}) for layer in range(1, depth + 1)]
