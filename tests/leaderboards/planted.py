"""Plausible records and arrays of every analysis that is drawn, without a run."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from layerboard.leaderboards.records.arrays import write_arrays
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.record import Record
from tests.leaderboards.builder import record

PATCHES = {"tap": "attention", "pooling": "patch"}
CLASS = {"tap": "attention", "pooling": "cls"}
BLOCK = {"tap": "block", "pooling": "patch"}
DATASET = "mini-imagenet"
OF_ANALYSES = {"dataset": DATASET, "split": "val", "analysis": True}


def metrics() -> dict[str, list[tuple[str, dict[str, str], bool]]]:
    """Of each analysis its metrics with tap and pooling, the primary one first, and whether heads have it."""
    shares = ("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self")
    halves = ("attention", "mlp")
    kinds = ("cls", "patch", "all")
    cosines = ("cosine-skip-output", "cosine-skip-branch", "cosine-branch-output")
    ious = [f"saliency-iou{end}" for end in ("-best", "", "-oracle", "-merged", "-uniform")]
    return {
        "attention-distance": [(f"attention-distance{end}", PATCHES, True) for end in ("", "-px", "-ratio")],
        "attention-maps": [
            ("map-centre-distance", PATCHES, True),
            ("map-centre-distance", CLASS, True),
            ("offset-heads", PATCHES, False),
        ],
        "attention-shares": [(name, where, True) for name in shares for where in (PATCHES, CLASS)],
        "saliency": [
            *((name, where, name == "saliency-iou") for name in ious for where in (CLASS, PATCHES)),
            ("rollout-iou", CLASS, False),
        ],
        "residuals": [
            (name, {"tap": tap, "pooling": kind}, False)
            for name in ("norm-ratio", *cosines)
            for tap in halves
            for kind in kinds
        ],
        "receptive-field": [
            (name, {"tap": tap, "pooling": "patch"}, False)
            for name in ("erf-half-radius", "erf-half-area")
            for tap in ("block", "mid")
        ],
        "localisation": [
            (f"localisation{end}", BLOCK, False) for end in ("", "-top1", "-distance", "-contrast")
        ],
        "position-audit": [
            (name, {"tap": "block", "pooling": "patch"}, False) for name in ("position-r2", "same-place")
        ],
        "token-probes": [("fewshot-10", {"tap": "block", "pooling": "token"}, False)],
        "residual-cka": [
            (f"cka-{pair}", {"tap": tap, "pooling": "patch"}, False)
            for pair in ("skip-branch", "skip-output")
            for tap in halves
        ],
        "label-free": [
            (name, {"tap": "block", "pooling": pooling}, False)
            for name in ("effective-rank", "cka-to-last", "view-top1")
            for pooling in ("cls", "mean")
        ],
        "locality": [],
        "inspect": [],
    }


WHOLE = {"inspect": ["filter-rank", "position-distance-rho"], "residuals": ["phase-transition"]}
"""Metrics of a backbone as a whole."""


def records(task: str, backbones: Mapping[str, str], depth: int = 12, heads: int = 3) -> list[Record]:
    """Numbers that grow with depth and differ by backbone and head."""
    found = []
    for rank, (name, family) in enumerate(backbones.items()):
        facts = {"task": task, "backbone": name, "family": family, "depth": depth, **OF_ANALYSES}
        for place, (metric, where, of_heads) in enumerate(metrics()[task]):
            for layer in range(1, depth + 1):
                for head in range(-1, heads if of_heads else 0):
                    value = (1 + np.sin(layer / 3 + rank)) / 3 + 0.05 * head
                    own = facts | where | {"metric": metric, "primary": place == 0, "layer": layer}
                    found.append(record(**own, head=head, value=float(value)))
        for metric in WHOLE.get(task, []):
            first = metric == WHOLE[task][0] and not metrics()[task]
            found.append(
                record(**facts, metric=metric, primary=first, layer=-1, pooling="patch", value=0.5 + rank)
            )
    return found


def arrays(task: str, depth: int = 12, heads: int = 3, grid: int = 8, seed: int = 0) -> dict[str, np.ndarray]:
    """What an analysis keeps beside its records."""
    random = np.random.default_rng(seed)
    cells, tokens = grid * grid, grid * grid + 1
    row, column = np.mgrid[:grid, :grid].reshape(2, cells)
    away = np.hypot(row[:, None] - row, column[:, None] - column)
    block = {"block": np.arange(1, depth + 1)}
    wide = np.linspace(1, 4, depth)
    if task == "attention-maps":
        image = random.integers(0, 255, (5, 8, 8, 3), np.uint8).repeat(8, axis=1).repeat(8, axis=2)
        return block | {
            "cls_map": random.random((depth, heads, tokens)),
            "patch_map": random.random((depth, heads, tokens)),
            "aaam": random.random((depth, heads, 2 * grid - 1, 2 * grid - 1)) ** 4,
            "sample_image": image,
            "sample": np.array([f"image {place}" for place in range(5)]),
            "sample_cls": random.random((5, depth, grid, grid)) ** 3,
            "sample_rollout": random.random((5, depth, grid, grid)) ** 3,
            "sample_heads": random.random((depth, heads, grid, grid)) ** 3,
            "class": np.resize(["global", "soft", "offset", "axial", "strict"], (depth, heads)),
        }
    if task == "saliency":
        middle = np.hypot(row - grid / 2, column - grid / 2)
        return block | {"rollout_map": np.exp(-middle / wide[:, None])}
    if task == "residuals":
        ratio = random.random((depth, 2, tokens)) * np.linspace(1, 14, depth)[:, None, None]
        ratio[:, :, 0] = np.linspace(12, 1, depth)[:, None]
        return block | {"ratio": ratio, "half": np.array(["attention", "mlp"])}
    if task == "receptive-field":
        side = np.arange(8 * grid) - 4 * grid + 0.5
        far = np.hypot(side[:, None], side)
        fields = np.exp(-far / (4 * wide[:, None, None]))
        return block | {"erf": np.stack([fields, fields**2], axis=1), "tap": np.array(["block", "mid"])}
    if task == "localisation":
        return block | {"token_patch": np.exp(-away / wide[:, None, None]), "cells": np.array([grid, grid])}
    if task == "token-probes":
        place = np.stack([row, column], axis=1)
        return {
            "token_accuracy": 10 * wide[:, None] + random.random((depth, cells)),
            "token": np.broadcast_to(place, (depth, cells, 2)),
        }
    if task == "residual-cka":
        far = np.abs(np.subtract.outer(block["block"], block["block"]))
        cka = np.exp(-far / 4) * np.array([1, 0.8])[:, None, None]
        names = {"pooling": ["cls", "patch"], "half": ["attention", "mlp"], "pair": ["skip-branch"]}
        axes = {name: np.array(values) for name, values in names.items()}
        return block | axes | {"cka": np.broadcast_to(cka[:, None], (2, 2, 1, depth, depth))}
    if task == "locality":
        cka = np.linspace(0.6, 0.3, 10).reshape(2, 5).T
        return {"head_cka": cka, "distance": np.array([9.0, 2, 3, 4, 5])}
    if task == "inspect":
        return {
            "filters": random.random((28, 8, 8, 3)),
            "position_cosine": np.exp(-away / 3).reshape(grid, grid, grid, grid),
        }
    return {}


def compared(first: str = "mini-dino", second: str = "mini-resnet") -> list[Record]:
    """Locality of a transformer against a ConvNet: of its blocks together, and of each of two."""
    facts = {"task": "locality", "metric": "locality-rho", **OF_ANALYSES}
    facts |= {"backbone": first, "other": second, "other_tap": "block", "tap": "heads", "pooling": "patch"}
    values = {-1: -0.7, 1: -0.9, 2: -0.5}
    return [record(**facts, layer=1, other_layer=layer, value=value) for layer, value in values.items()]


def plant(folder: Path, task: str, backbones: Mapping[str, str], **sizes: int) -> None:
    """Write the arrays of an analysis of some backbones into a folder of arrays."""
    for seed, name in enumerate(backbones):
        pair = (name, "mini-resnet") if task == "locality" else (name,)
        found = arrays(task, seed=seed, **sizes)
        path = scored_path(task_key(task, DATASET, "standard"), *pair, ending="npz")
        if found:
            write_arrays(found, folder / path)
