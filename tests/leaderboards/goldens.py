"""Records of the stored pages; ``python -m tests.leaderboards.goldens`` writes the pages anew, to be read."""

from pathlib import Path

import pandas as pd

from leaderboards.render import render_page
from tests.leaderboards.builder import NAN, floor, frame, layers, pair, record

EXPECTED = Path(__file__).parent / "expected"

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
MAE = {"backbone": "mini-mae", "family": "MAE", "trained": False}
RESNET = {"backbone": "mini-resnet", "family": "ResNet", "pooling": "mean"}
SECOND = {"pooling": "mean", "primary": False}
TOP5 = {"metric": "top-5", "primary": False}
DAVIS = {
    "task": "davis",
    "dataset": "mini-davis",
    "split": "val",
    "metric": "J&F",
    "pooling": "grid",
    "coverage": "8 of 8 videos",
    "n": 16,
    "unit": "objects",
}


def several() -> pd.DataFrame:
    """Four backbones and the floor on three tasks: ties, gaps, partial data, poolings, CKA."""
    return frame(_knn(), _retrieval(), _davis(), _cka())


def single() -> pd.DataFrame:
    """One backbone on one task."""
    return frame(layers([40.0, 61.25, 61.25]))


def broken() -> pd.DataFrame:
    """One backbone whose only task failed as a whole."""
    return frame([record(metric="", value=NAN, reason="the archive is damaged; download it again.", n=0)])


PAGES = {"several": several, "single": single, "broken": broken}


def _knn():
    return [
        *layers([30.0, 62.04, 62.04], 64.0),
        *layers([31.0, 63.0, 60.0], 59.0, **SECOND),
        *layers([50.0, 80.0, 81.0], **TOP5),
        *layers([45.0, 70.0, 66.0], 71.0, **CLIP),
        *layers([44.0, 60.0, 59.0], 58.0, **CLIP, **SECOND),
        *layers([60.0, 79.0, 85.0], **CLIP, **TOP5),
        *layers([20.0, 21.0, 19.0], 19.5, **MAE),
        *layers([55.0, 70.0], **RESNET),
        *floor([9.0, 10.0, 11.0]),
        *floor([48.0, 50.0, 52.0], **TOP5),
    ]


def _retrieval():
    common = {"task": "retrieval", "metric": "mAP medium", "split": "test", "n": 70, "unit": "queries"}
    oxford = common | {"dataset": "roxford5k", "coverage": "70 queries, 4,993 images"}
    paris = {"dataset": "rparis6k", "partial": True, "coverage": "70 queries, 6,300 of 6,322 images"}
    found = []
    for facts, gain in ((oxford, 0.0), (common | paris, 20.0)):
        found += layers([gain + 10, gain + 30, gain + 20], **facts)
        found += layers([gain + 12, gain + 25, gain + 31.5], **CLIP, **facts)
        found += floor([2.0], **facts)
    return found


def _davis():
    return [
        *layers([40.0, NAN, 55.5], **DAVIS),
        *layers([NAN, NAN, NAN], **DAVIS, **MAE),
        *layers([50.0, 51.0], **(DAVIS | RESNET | {"pooling": "grid"})),
        record(**DAVIS, **CLIP, layer=3, value=50.0),
    ]


def _cka():
    dino, clip, mae = "mini-dino", "mini-clip", "mini-mae"
    return [
        pair(dino, 3, dino, 3, 1.0),
        pair(clip, 3, clip, 3, 1.0),
        pair(mae, 3, mae, 3, 1.0, trained=False),
        pair(dino, 3, clip, 3, 0.4321),
        pair(dino, 2, clip, 1, 0.75),
        pair(dino, 3, clip, 1, 0.75),
        pair(mae, 3, dino, 3, -0.0001, trained=False),
        pair(clip, 3, mae, 3, NAN, reason="a batch is constant"),
    ]


if __name__ == "__main__":
    EXPECTED.mkdir(exist_ok=True)
    for name, build in PAGES.items():
        (EXPECTED / f"{name}.md").write_text(render_page(build(), "mini"), encoding="utf-8")
