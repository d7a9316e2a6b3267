"""Plausible records without a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import Record, to_frame
from layerboard.tasks.framework.base import Items, Over, Statistic
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Retraining

NAN = float("nan")
KNN = task_key("knn", "mini-imagenet", "standard")


def record(**changes: Any) -> Record:
    usual = Record(
        suite="mini",
        backbone="mini-dino",
        family="DINO",
        trained=True,
        revision="0123456789abcdef",
        depth=3,
        input_size=64,
        task="knn",
        protocol="standard",
        dataset="mini-imagenet",
        split="train, val",
        partial=False,
        coverage="1,000 + 400 of 1,400 images",
        layer=1,
        tap="block",
        pooling="cls",
        metric="top-1",
        primary=True,
        value=50.0,
        n=400,
        unit="images",
        dtype="float32",
        device="cpu",
        fingerprint="f",
        seconds=1.0,
        version="0.1.0",
        date="2026-11-20T10:00:00+00:00",
    )
    return replace(usual, **changes)


def layers(values: Sequence[float], final: float | None = None, **changes: Any) -> list[Record]:
    """One record a layer, from layer 1; a NaN value gets a reason."""

    def one(layer: int, value: float, tap: str) -> Record:
        reason = "its features are all equal" if np.isnan(value) else ""
        usual = {"depth": len(values), "reason": reason}
        return record(**(usual | changes | {"layer": layer, "tap": tap, "value": value}))

    found = [one(index, value, "block") for index, value in enumerate(values, start=1)]
    return found if final is None else [*found, one(len(values), final, "final")]


def floor(values: Sequence[float], **changes: Any) -> list[Record]:
    usual: dict[str, Any] = {"backbone": "random", "family": "random", "trained": False}
    return layers(values, **(usual | changes))


def pair(first: str, layer: int, second: str, other_layer: int, value: float, **changes: Any) -> Record:
    usual = {
        "backbone": first,
        "layer": layer,
        "other": second,
        "other_layer": other_layer,
        "other_tap": "block",
        "value": value,
        "task": "cka",
        "metric": "CKA",
        "dataset": "mini-imagenet",
        "split": "val",
        "n": 4,
        "unit": "batches",
        "family": {"mini-dino": "DINO", "mini-clip": "CLIP", "mini-mae": "MAE"}.get(first, "other"),
    }
    return record(**(usual | changes))


def unsure(
    records: Sequence[Record],
    half: float = 0.8,
    chosen: Mapping[int, float] | None = None,
    loss: float = 0.5,
    maybe: Sequence[int] = (),
) -> list[Record]:
    """The same records with intervals of one width and, of the blocks, how often each was chosen.

    A layer's held-out score is its score less the loss; ``maybe`` are blocks that may be the best.
    """
    found = []
    for one in records:
        share = (chosen or {}).get(one.layer, 0.0) if chosen and one.tap == "block" else NAN
        found.append(
            replace(
                one,
                ci_low=one.value - half,
                ci_high=one.value + half,
                chosen=share,
                held_out=one.value - loss if share > 0 else NAN,
                maybe_best=one.tap == "block" and one.layer in maybe,
            )
        )
    return found


def measured(
    values: Sequence[float], metric: str = "top-1", over: Over = "items", prefix: str = "image "
) -> Items:
    """Items of one layer and metric, one value each."""
    keys = tuple(f"{prefix}{place}" for place in range(len(values)))
    columns = {metric: np.array(values, np.float64)}
    return Items("images", keys, keys, ("",) * len(keys), columns, {metric: Statistic(metric, over)})


def write_layers(
    folder: Path,
    backbone: str,
    by_layer: Sequence[Sequence[float]] | Mapping[int | tuple[int, str], Sequence[float]],
    key: str = KNN,
    *,
    pooling: str = "cls",
    metric: str = "top-1",
    prefix: str = "image ",
) -> None:
    """Write the items of a backbone: values of each layer from 1 on, or by layer, or by layer and pooling."""
    every = by_layer if isinstance(by_layer, Mapping) else dict(enumerate(by_layer, start=1))
    items = {}
    for place, values in every.items():
        layer, name = place if isinstance(place, tuple) else (place, pooling)
        items[layer, "block", name] = measured(values, metric, prefix=prefix)
    write_items(items, folder / scored_path(key, backbone))


def frame(*groups: Iterable[Record]) -> pd.DataFrame:
    return to_frame([one for group in groups for one in group])


@dataclass(frozen=True)
class Task:
    name: str
    dataset: str
    metrics: tuple[str, ...]
    top: float
    dense: bool
    n: int
    unit: str


TASKS = (
    Task("knn", "mini-imagenet", ("top-1", "top-5", "top-1 k=10", "top-5 k=10"), 70, False, 400, "images"),
    Task(
        "retrieval",
        "roxford5k",
        ("mAP medium", "mAP easy", "mAP hard", "mP@1 medium"),
        40,
        False,
        70,
        "queries",
    ),
    Task(
        "retrieval",
        "rparis6k",
        ("mAP medium", "mAP easy", "mAP hard", "mP@1 medium"),
        55,
        False,
        70,
        "queries",
    ),
    Task("davis", "mini-davis", ("J&F", "J", "F"), 60, True, 16, "objects"),
    Task("spair", "mini-spair", ("PCK@0.1", "PCK@0.05", "PCK@0.01"), 35, True, 1200, "keypoints"),
    Task("cluster-image", "mini-imagenet", ("purity", "NMI", "ARI"), 50, False, 400, "images"),
    Task("cluster-object", "mini-coco", ("purity", "NMI", "ARI"), 45, True, 900, "objects"),
    Task("cluster-part", "mini-partimagenet", ("purity", "NMI", "ARI"), 30, True, 1500, "parts"),
)
BACKBONES = (
    ("mini-fs", "FS", True),
    ("mini-clip", "CLIP", True),
    ("mini-dino", "DINO", True),
    ("mini-moco", "MoCo", True),
    ("mini-mae", "MAE", True),
    ("mini-beit", "BEiT", False),
    ("mini-resnet", "ResNet", True),
)
DEPTH = 12


def full_suite(
    seed: int = 0, compared: Sequence[str] = ("cls", "mean", "patch"), metrics: int = 4
) -> pd.DataFrame:
    """Seven backbones and the random floor on eight data sets of seven tasks, and CKA."""
    random = np.random.default_rng(seed)
    found: list[Record] = []
    for task in [replace(task, metrics=task.metrics[:metrics]) for task in TASKS]:
        for name, family, trained in BACKBONES:
            base = {"backbone": name, "family": family, "trained": trained}
            found += _scores(random, task, **base)
        for rank, metric in enumerate(task.metrics):
            values = [round(float(random.normal(2, 0.3)), 3) for _ in range(10)]
            found += floor(
                values, **_facts(task, metric), primary=rank == 0, pooling="grid" if task.dense else "cls"
            )
    return to_frame(found + _cka(random, compared))


def _facts(task: Task, metric: str) -> dict[str, object]:
    partial = task.dataset == "rparis6k"
    return {
        "task": task.name,
        "dataset": task.dataset,
        "metric": metric,
        "n": task.n,
        "unit": task.unit,
        "split": "train, val" if task.name == "knn" else "val",
        "partial": partial,
        "coverage": f"{task.n - partial * 3} of {task.n} {task.unit}",
    }


def _scores(random: np.random.Generator, task: Task, **base: Any) -> list[Record]:
    found = []
    mean_only = base["family"] == "ResNet"
    for pooling in ("grid",) if task.dense else ("mean",) if mean_only else ("cls", "mean"):
        for rank, metric in enumerate(task.metrics):
            peak = random.uniform(7, 12)
            values = [task.top * (1 - abs(k - peak) / 20) + random.normal(0, 2) for k in range(1, DEPTH + 1)]
            if base["family"] == "MAE" and task.name == "davis":
                values[3] = NAN
            last = None if mean_only else values[-1] + 0.5
            primary = rank == 0 and (pooling != "mean" or mean_only)
            found += layers(values, last, **base, **_facts(task, metric), pooling=pooling, primary=primary)
    return found


def _cka(random: np.random.Generator, compared: Sequence[str]) -> list[Record]:
    found = []
    for pooling in compared:
        names = [b for b in BACKBONES if pooling != "cls" or b[1] != "ResNet"]
        for place, (name, family, trained) in enumerate(names):
            for other, _, _ in names[place:]:
                for i in range(1, DEPTH + 1):
                    for j in range(i if other == name else 1, DEPTH + 1):
                        value = (
                            1.0 if (name, i) == (other, j) else 0.9 - abs(i - j) / 20 + random.normal(0, 0.05)
                        )
                        facts = {"family": family, "trained": trained, "depth": DEPTH, "pooling": pooling}
                        found.append(pair(name, i, other, j, value, **facts))
    return found


def retrained_specs(trainings: Mapping[str, Retraining]) -> dict[str, BackboneSpec]:
    """Entries of made-up backbones, by name, that are other trainings of others."""
    (spec,) = find(["mini-fs"])
    return {name: replace(spec, name=name, retrained=each) for name, each in trainings.items()}
