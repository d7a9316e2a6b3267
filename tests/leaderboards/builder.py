"""Plausible records without a run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import write_items
from layerboard.leaderboards.records.record import Record, to_frame
from layerboard.tasks.framework.base import Items, Over, Statistic

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
    family = {"mini-dino": "DINO", "mini-clip": "CLIP", "mini-mae": "MAE"}.get(first, "other")
    sides = {"backbone": first, "layer": layer, "other": second, "other_layer": other_layer, "family": family}
    usual = {"task": "cka", "metric": "CKA", "split": "val", "n": 4, "unit": "batches", "other_tap": "block"}
    return record(**(usual | sides | {"value": value} | changes))


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


def hits(right: float, count: int = 100) -> np.ndarray:
    """The scores of some images of which so many, the first ones, are right: 100 or 0."""
    return 100.0 * (np.arange(count) < right)


def scored(
    folder: Path,
    backbone: str,
    by_layer: Sequence[Sequence[float]] | Mapping[str, Sequence[Sequence[float]]],
    prefix: str = "image ",
    **changes: Any,
) -> list[Record]:
    """Records of a backbone and, in a folder, the items that its scores are the means of.

    ``by_layer`` are values of items layer by layer, or these by pooling, the primary one first.
    """
    usual = {"task": "knn", "dataset": "mini-imagenet", "metric": "top-1", "pooling": "cls", "transform": ""}
    facts = {**usual, **changes, "backbone": backbone}
    by_pooling = by_layer if isinstance(by_layer, Mapping) else {facts["pooling"]: by_layer}
    items, records = dict[int | tuple[int, str], Sequence[float]](), list[Record]()
    for place, (pooling, every) in enumerate(by_pooling.items()):
        items |= {(layer, pooling): values for layer, values in enumerate(every, start=1)}
        own = {**facts, "pooling": pooling, "primary": not place}
        records += layers([float(np.mean(values)) for values in every], **own)
    key = task_key(facts["task"], facts["dataset"], "standard", facts["transform"])
    write_layers(folder, backbone, items, key, metric=facts["metric"], prefix=prefix)
    return records


def frame(*groups: Iterable[Record]) -> pd.DataFrame:
    return to_frame([one for group in groups for one in group])
