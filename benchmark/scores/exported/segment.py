"""Mean IoU of segmentation: of masks that any code predicted, or by a vote of exported features."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from benchmark.scores.exported.arrays import Array, Floats, as_floats, read_archive
from benchmark.scores.exported.options import SegmentProtocol
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.checks import ALIKE, unusable
from tasks.datasets.files import file_names, some
from tasks.datasets.masks import read_mask
from tasks.metrics.arrays import VOID, Integers, Labels
from tasks.metrics.cell_labels import cell_counts
from tasks.metrics.label_map import label_map
from tasks.metrics.label_vote import most_similar, vote
from tasks.metrics.overlaps import Overlaps, confusion, renamed
from tasks.segmentation.in_context import Choice, Vote, label_vectors
from tasks.segmentation.problem import SegmentationConfig
from zoo.errors import InputError

GRIDS = ("train", "test")
ARRAYS = ("train", "train_masks", "test", "test_masks")


@dataclass(frozen=True, slots=True)
class Judged:
    """Which labels are classes, and which pixels are judged.

    Attributes:
        classes: How many there are, from 0; None for as many as the masks hold.
        ignored: Labels of pixels that are not judged.
    """

    classes: int | None
    ignored: tuple[int, ...]

    def truth(self, masks: Labels) -> Labels:
        """Masks with 255 where nothing is judged."""
        return np.where(np.isin(masks, self.ignored), np.uint8(VOID), masks)

    def count(self, masks: Sequence[Labels]) -> int:
        """How many classes there are; raises InputError where a mask holds more."""
        found = 1 + max((int(mask[mask != VOID].max(initial=0)) for mask in masks), default=0)
        if self.classes is not None and not found <= self.classes <= VOID:
            raise InputError(f"expected --classes of {found} to {VOID}, found {self.classes}")
        return self.classes or found


def score_predictions(ground_truth: Path, predictions: Path, judged: Judged) -> ScoreReport:
    """Mean IoU and accuracies in percent of predicted masks.

    Args:
        ground_truth: Folder of ``<image>.png`` whose pixel values are classes.
        predictions: Folder of masks of the same names and sizes; those of the ground truth that have none
            are not scored.
        judged: Classes and labels that are not judged.

    Raises:
        InputError: There is no prediction, or one has no ground truth or another size.
    """
    names, truths = (file_names(folder, (".png",)) for folder in (predictions, ground_truth))
    if alone := sorted({*names} - {*truths}):
        raise InputError(f"expected a mask in {ground_truth} for every prediction, none for {some(alone)}")
    if not names:
        raise InputError(f"expected predicted masks (*.png) in {predictions}, found none")
    given = [read_mask(predictions / name, "classes") for name in names]
    truth = [judged.truth(read_mask(ground_truth / name, "classes")) for name in names]
    for name, one, other in zip(names, given, truth, strict=True):
        if one.shape != other.shape:
            raise InputError(f"{name} has another size than its ground truth: {one.shape}, {other.shape}")
        if (one == VOID).any():
            raise InputError(f"expected a class for every pixel of {predictions / name}, found {VOID} (none)")
    classes = judged.count([*given, *truth])
    tables = [confusion(*pair, classes) for pair in zip(truth, given, strict=True)]
    missing = sorted({*truths} - {*names})
    note = f"{len(missing)} of {len(truths)} masks have no prediction and do not count: {some(missing)}"
    files: dict[str, Json] = {"ground_truth": str(ground_truth), "predictions": str(predictions)}
    return report_of(tables, "standard", {**files, **numbers_of(judged, classes)}, (note,) if missing else ())


def score_features(
    features: Path, judged: Judged, rule: SegmentationConfig, memory: int, protocol: SegmentProtocol
) -> ScoreReport:
    """Mean IoU and accuracies in percent of a vote of the cells of training images.

    Args:
        features: Archive of train and test, grids [images height width dim], and of train_masks and
            test_masks, [images rows columns] uint8.
        judged: Classes and labels that are not judged.
        rule: How cells vote; its view is not used.
        memory: Cells that are remembered at most.
        protocol: Whose rules: ``hummingbird`` makes pixels of 255 background in the memory, so that any cell
            may be remembered, renames predicted classes and averages over all classes.

    Raises:
        InputError: Something about the file is wrong.
    """
    (train, test), masks = read_features(features)
    classes = judged.count(masks)
    hummingbird = protocol is SegmentProtocol.hummingbird
    known = np.where(masks[0] == VOID, np.uint8(0), masks[0]) if hummingbird else judged.truth(masks[0])
    least = 0.0 if hummingbird else rule.least
    rows, labels = _remembered(train, known, classes, replace(rule, least=least), memory)
    if not len(rows):
        raise InputError(f"no cell of train_masks of {features} has a class in half of its pixels")
    tables = [
        _labelled(grid, truth, rows, labels, rule.vote)
        for grid, truth in zip(test, judged.truth(masks[1]), strict=True)
    ]
    numbers: dict[str, Json] = {
        "features": str(features),
        "k": rule.vote.k,
        "temperature": rule.vote.temperature,
        "memory": memory,
        "seed": rule.seed,
        "cells": len(rows),
        **numbers_of(judged, classes),
    }
    return report_of(tables, protocol.value, numbers, ())


def read_features(features: Path) -> tuple[tuple[Floats, Floats], tuple[Labels, Labels]]:
    """Grids and masks of train and of test, which fit each other.

    Raises:
        InputError: Something about the file is wrong, or its features are all equal.
    """
    arrays = read_archive(features, ARRAYS)
    train, test = (as_floats(arrays[name], f"{name} of {features}", "[n h w dim]") for name in GRIDS)
    known, judged = (
        _masks(arrays[f"{name}_masks"], f"{name}_masks of {features}", len(grid))
        for name, grid in zip(GRIDS, (train, test), strict=True)
    )
    if train.shape[-1] != test.shape[-1]:
        raise InputError(f"train and test of {features} have vectors of different lengths")
    if unusable(test.reshape(-1, test.shape[-1])):  # type: ignore[arg-type]
        raise InputError(f"expected features that tell cells apart in {features}, but {ALIKE}")
    return (train, test), (known, judged)


def _remembered(
    grids: Floats, masks: Labels, classes: int, rule: SegmentationConfig, memory: int
) -> tuple[Tensor, Tensor]:
    """Unit vectors [cells dim] and label vectors [cells classes] of the cells that are kept."""
    rows, labels = [], []
    choice = Choice(max(1, memory // len(grids)), rule.least, rule.seed)
    for number, (grid, mask) in enumerate(zip(grids, masks, strict=True)):
        cells, pixels = choice.of(cell_counts(mask, grid.shape[:2], classes), str(number))
        rows.append(grid.reshape(-1, grid.shape[-1])[cells])
        labels.append(pixels)
    vectors = torch.from_numpy(np.concatenate(rows)).float()
    return functional.normalize(vectors, dim=-1), label_vectors(np.concatenate(labels))


def _labelled(grid: Floats, truth: Labels, rows: Tensor, labels: Tensor, how: Vote) -> Integers:
    """Confusion matrix of one image."""
    queries = functional.normalize(torch.from_numpy(grid).float().flatten(0, 1), dim=-1)
    voted = vote(most_similar(queries, rows, how.k), labels, how.temperature)
    given = label_map(voted.view(*grid.shape[:2], -1), (truth.shape[1], truth.shape[0]))
    return confusion(truth, given, labels.shape[1])


def report_of(
    tables: Sequence[Integers], protocol: str, parameters: dict[str, Json], notes: tuple[str, ...]
) -> ScoreReport:
    """Scores of images in percent, and the IoU of each class that the truth shows.

    Args:
        tables: Confusion matrix of each image.
        protocol: Whose mean IoU stands first.
        parameters: What the scores were made with.
        notes: What a reader must know.
    """
    table = np.sum(tables, axis=0)
    found = Overlaps.of(table)
    others = {"mIoU of shown or predicted": found.mean_iou_of_seen()}
    if protocol == "capi":  # of which one class is no class that is predicted, and nothing is renamed
        first = others["mIoU of shown or predicted"]
        others = {"mIoU of shown": found.mean_iou()}
    else:
        others["mIoU of all, renamed"] = Overlaps.of(renamed(table)).mean_iou_of_all()
        first = others["mIoU of all, renamed"] if protocol == "hummingbird" else found.mean_iou()
    every = {"mIoU": first, "pixel accuracy": found.accuracy(), "class accuracy": found.mean_accuracy()}
    percent: dict[str, float | None] = {
        name: None if np.isnan(value) else 100.0 * value for name, value in {**every, **others}.items()
    }
    shown = np.flatnonzero(found.truth)
    classes = {str(number): 100.0 * float(found.iou[number]) for number in shown}
    return ScoreReport(
        command="segment",
        protocol=protocol,
        parameters=parameters,
        n=len(tables),
        unit="images",
        scores=percent,
        grid=Grid("class", ("IoU",), {name: (one,) for name, one in {**classes, **percent}.items()}),
        details={"IoU": classes},
        reason="" if len(shown) else "no pixel that is judged has a class",
        notes=notes,
    )


def numbers_of(judged: Judged, classes: int) -> dict[str, Json]:
    """What was judged, for reports."""
    return {"classes": classes, "ignored": [float(one) for one in judged.ignored]}


def _masks(array: Array, where: str, images: int) -> Labels:
    if array.ndim != 3 or len(array) != images or 0 in array.shape:
        raise InputError(f"expected {where} to have the shape [{images} rows columns], found {array.shape}")
    if array.dtype.kind not in "biu":
        raise InputError(f"expected whole numbers as {where}, found the type {array.dtype}")
    values = array.astype(np.int64)
    if values.min() < 0 or values.max() > VOID:
        raise InputError(
            f"expected classes of 0 to {VOID} in {where}, found {values.min()} to {values.max()}"
        )
    return values.astype(np.uint8)
