"""Small records for the report, without a run."""

from dataclasses import replace
from functools import cache

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.findings.facts import Facts
from layerboard.leaderboards.report.content import report_of
from layerboard.leaderboards.report.page import report_page
from tests.leaderboards.builder import floor, frame, layers, pair, record, unsure

HOSTILE = "</script><script>alert(1)</script>\"'&lt;{x}"
KNN, DAVIS = "knn top-1", "davis J&F"

SCORES = {
    "mini-fs": ("FS", [30.0, 50.0, 60.1234]),
    "mini-clip": ("CLIP", [20.0, 61.5, 40.0]),
    "mini-dino": ("DINO", [25.0, 61.5, 62.25]),
    HOSTILE: ("own <b>", [10.0, 11.0, 12.0]),
}
FACTS = {
    "mini-fs": Facts("labels", "Apache-2.0", 1_000_000, (64, 64, 64)),
    "mini-clip": Facts("texts", "MIT", 80_000_000, (64, 64, 128)),
    "mini-dino": Facts("images", "CC-BY-NC-4.0", 600_000_000, (64, 64, 64)),
}


def scored(name, family, values, **changes):
    """One task of one backbone: intervals of ± 1, chosen on every half, where no other may be the best."""
    best = values.index(max(values)) + 1
    made = layers(values, backbone=name, family=family, **changes)
    return unsure(made, half=1.0, chosen={best: 1.0}, loss=0.5)


def cost(name, layer, metric, value):
    return record(
        backbone=name, family="", layer=layer, metric=metric, value=value, task="cost", dataset="a card",
        pooling="all", analysis=True, primary=False, unit="runs", depth=3,
    )  # fmt: skip


def small():
    """Four backbones of three layers, two tasks, a floor, CKA of two; costs and an analysis of one."""
    found = []
    davis = {"task": "davis", "dataset": "mini-davis", "metric": "J&F", "pooling": "grid"}
    for name, (family, values) in SCORES.items():
        found += scored(name, family, values)
        found += scored(name, family, [value / 2 for value in reversed(values)], **davis)
    found += floor([2.0, 4.0]) + floor([1.0, 2.0], **davis)
    for one, other in (("mini-clip", "mini-clip"), ("mini-clip", "mini-dino")):
        for i in range(1, 4):
            for j in range(i if one == other else 1, 4):
                value = 1.0 if (one, i) == (other, j) else 0.9 - 0.1 * abs(i - j) - 0.01 * i
                found.append(replace(pair(one, i, other, j, value, depth=3), family="CLIP"))
    for layer in (1, 2, 3):
        found.append(cost("mini-clip", layer, "ms", 2.0 * layer))
        found.append(cost("mini-clip", layer, "parameters", 1e6 * layer))
        found.append(cost("mini-clip", layer, "dim", 64.0))
    found.append(cost("mini-clip", -1, "latency", 7.0))
    looks = {
        "task": "attention-distance",
        "metric": "attention-distance",
        "tap": "attention",
        "analysis": True,
    }
    found += [record(backbone="mini-clip", layer=layer, value=0.1 * layer, **looks) for layer in (1, 2, 3)]
    return frame(found)


@cache
def usual():
    """What is said of the small records, made once for all tests that change nothing of it."""
    return report_of(Board.of(small(), "mini"), FACTS)


@cache
def usual_page():
    """The report of the small records."""
    return report_page(usual())


def content(records=None, highlight="", **more):
    """What is said of some records, or of the small ones, with more for their board."""
    if records is None and not highlight and not more:
        return usual()
    return report_of(Board.of(small() if records is None else records, "mini", **more), FACTS, highlight)
