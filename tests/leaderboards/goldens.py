"""Records of the stored pages; ``python -m tests.leaderboards.goldens`` writes the pages anew, to be read."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from tests.leaderboards.builder import NAN, floor, frame, hits, layers, pair, record, unsure, write_layers
from tests.leaderboards.shown import render_page

EXPECTED = Path(__file__).parent / "expected"

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
MAE = {"backbone": "mini-mae", "family": "MAE", "trained": False}
RESNET = {"backbone": "mini-resnet", "family": "ResNet", "pooling": "mean"}
SECOND = {"pooling": "mean", "primary": False}
TOP5 = {"metric": "top-5", "primary": False}
DAVIS = {"task": "davis", "dataset": "mini-davis", "split": "val", "metric": "J&F", "pooling": "grid"}
DAVIS |= {"coverage": "8 of 8 videos", "n": 16, "unit": "objects"}


def several() -> pd.DataFrame:
    """Four backbones and the floor on three tasks: equal scores, gaps, partial data, poolings, CKA."""
    return frame(_knn(), _retrieval(), _davis(), _cka())


def single() -> pd.DataFrame:
    """One backbone on one task."""
    return frame(layers([40.0, 61.25, 61.25]))


def broken() -> pd.DataFrame:
    """One backbone whose only task failed as a whole."""
    return frame([record(metric="", value=NAN, reason="the archive is damaged; download it again.", n=0)])


def uncertain() -> pd.DataFrame:
    """Three backbones and the floor on two tasks and CKA, with intervals, chosen layers and bounds."""
    return frame(_unsure_knn(), _unsure_davis(), _unsure_cka())


PAGES = {"several": several, "single": single, "broken": broken, "uncertain": uncertain}


def page(name: str, seed: int | None = None) -> str:
    """A page of `PAGES`; the uncertain one with measurements by which its backbones are compared.

    With a seed its records are in an order that is drawn.
    """
    records = PAGES[name]() if seed is None else PAGES[name]().sample(frac=1, random_state=seed)
    if name != "uncertain":
        return render_page(records, "mini")
    with tempfile.TemporaryDirectory() as folder:
        write_measured(Path(folder))
        return render_page(records, "mini", Path(folder))


def write_measured(folder: Path) -> None:
    """Items of the k-NN scores of `uncertain`: 100 images; the first two backbones disagree on some."""
    order = np.random.default_rng(0).permutation(100)
    records = frame(one for one in _unsure_knn() if one.metric == "top-1" and one.tap == "block")
    for backbone, rows in records[records["family"] != "random"].groupby("backbone"):
        shift = int(backbone == "mini-dino")
        places = {
            (layer, pooling): np.roll(hits(right), shift)[order]
            for layer, pooling, right in zip(rows["layer"], rows["pooling"], rows["value"], strict=True)
        }
        write_layers(folder, str(backbone), places)


def _unsure_knn():
    common = {"n": 100}
    return [
        *unsure(layers([45.0, 70.0, 66.0], 71.0, **CLIP, **common), 9.0, {2: 0.9, 3: 0.1}, 0.5, [3]),
        *unsure(layers([44.0, 60.0, 59.0], 58.0, **CLIP, **SECOND, **common), 9.5, {2: 1.0}, 0.5, [3]),
        *unsure(layers([60.0, 79.0, 85.0], **CLIP, **TOP5, **common), 7.5, {3: 1.0}),
        *unsure(layers([30.0, 68.0, 67.0], 64.0, **common), 9.0, {2: 0.52, 3: 0.48}, 1.25, [3]),
        *unsure(layers([50.0, 80.0, 81.0], **TOP5, **common), 8.0, {3: 1.0}),
        *unsure(
            layers([20.0, 21.0, 19.0], 19.5, **MAE, **common), 8.0, {1: 0.37, 2: 0.6, 3: 0.03}, -0.5, [1]
        ),
        *floor([9.0, 10.0, 11.0], **common),
        *floor([48.0, 50.0, 52.0], **TOP5, **common),
    ]


def _unsure_davis():
    return [
        *unsure(layers([40.0, NAN, 55.5], **DAVIS), 3.25, {3: 1.0}, 0.0),
        *layers([50.0, 51.0, 50.0], **DAVIS, **CLIP),
    ]


def _unsure_cka():
    pairs = [
        pair("mini-dino", 3, "mini-dino", 3, 1.0),
        pair("mini-clip", 3, "mini-clip", 3, 1.0),
        pair("mini-dino", 3, "mini-clip", 3, 0.4321),
        pair("mini-dino", 2, "mini-clip", 1, 0.75),
    ]
    return unsure(pairs, 0.0123)


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
    for name in PAGES:
        (EXPECTED / f"{name}.md").write_text(page(name), encoding="utf-8")
