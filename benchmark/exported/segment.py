"""Mean IoU of segmentation: of masks that any code predicted, or of k-NN on exported features."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from layerboard.benchmark.exported.arrays import Array, Floats, as_floats, read_archive
from layerboard.benchmark.exported.davis import require_same_size
from layerboard.benchmark.exported.report import Json, ScoreReport, one_of, outcome_report
from layerboard.tasks.datasets.integrity import explaining, require
from layerboard.tasks.datasets.reading.files import file_names
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.datasets.scenes import VOC_2012
from layerboard.tasks.framework.base import Over
from layerboard.tasks.framework.checks import ALIKE, unusable
from layerboard.tasks.metrics.arrays import VOID, Integers, Labels, in_range
from layerboard.tasks.metrics.cell_labels import cell_counts, label_map
from layerboard.tasks.metrics.memory_search import most_similar
from layerboard.tasks.segmentation import capi, in_context
from layerboard.tasks.segmentation.overlaps import Overlaps, confusion, names_of_predictions
from layerboard.tasks.segmentation.shown import outcome_of
from layerboard.tasks.segmentation.task import SegmentationTask
from layerboard.zoo.errors import InputError, in_brackets, some

GRIDS = ("train", "test")
ARRAYS = ("train", "train_masks", "test", "test_masks")
MEANS: dict[Over, str] = {  # names of the mean IoU over some classes where it is not the primary one
    "classes": "mIoU of shown",
    "seen classes": "mIoU of shown or predicted",
    "all classes": "mIoU of all, renamed",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """The classes, and the labels of pixels to ignore."""

    classes: int | None  # number of classes, from 0; None for as many as the masks have
    ignored: tuple[int, ...]  # labels of ignored pixels

    def truth(self, masks: Labels) -> Labels:
        """Masks with 255 at ignored pixels."""
        return np.where(np.isin(masks, self.ignored), np.uint8(VOID), masks)

    def count(self, masks: Sequence[Labels]) -> int:
        """Number of classes; raises InputError if a mask has more."""
        least = 1 + max((int(mask[mask != VOID].max(initial=0)) for mask in masks), default=0)
        classes = least if self.classes is None else self.classes
        require(least <= classes <= VOID, f"classes of {least} to {VOID}", classes)
        return classes

    def numbers(self, classes: int) -> dict[str, Json]:
        """Parameters of the evaluation, for reports."""
        return {"classes": classes, "ignored": [float(label) for label in self.ignored]}


def score_segment(  # noqa: PLR0913  # as many as there are options
    features: Path | None,
    predictions: Path | None,
    ground_truth: Path | None,
    protocol: str,
    classes: int | None,
    ignore: tuple[int, ...] | None,
    k: int | None,
    temperature: float | None,
    memory: int | None,
) -> ScoreReport:
    """Mean IoU of k-NN segmentation from labelled patches, or of predicted masks; raises InputError.

    By default, the label 255 is ignored, classes are as many as the masks have, and other numbers are those
    of the protocol: hummingbird, where 255 is background, or capi, where all pixels of patches vote.
    """
    name, path = one_of(features=features, predictions=predictions)
    judged = Judged(classes, ignore or (VOID,))
    if name == "predictions":
        if ground_truth is None:
            raise InputError("--predictions needs --ground-truth, a folder of masks with the same names")
        return score_predictions(ground_truth, path, judged)
    if protocol == "capi" and temperature is not None:
        raise InputError("temperature does not go with --protocol capi, whose votes have no weights")
    if protocol == "capi":
        rule = capi.CapiTask.configs["capi"]
        return score_by_pixels(path, judged, replace(rule, ks=(k,)) if k else rule, memory)
    return score_features(path, judged, k, temperature, memory, protocol)


def score_predictions(ground_truth: Path, predictions: Path, judged: Judged) -> ScoreReport:
    """Mean IoU and accuracies in percent of predicted masks; raises InputError.

    Both folders hold ``<image>.png`` of the same names and sizes whose pixel values are classes; masks of the
    ground truth without a prediction are not scored.
    """
    names, truths = (file_names(folder, (".png",)) for folder in (predictions, ground_truth))
    alone = sorted({*names} - {*truths})
    require(not alone, f"a mask in {ground_truth} for every prediction", f"none for {some(alone)}")
    require(names, f"predicted masks (*.png) in {predictions}")
    for name in names:
        require_same_size(ground_truth / name, predictions / name)
    given = [read_mask(predictions / name, "classes") for name in names]
    truth = [judged.truth(read_mask(ground_truth / name, "classes")) for name in names]
    for name, mask in zip(names, given, strict=True):
        void = f"{VOID} (none)"
        require(not (mask == VOID).any(), f"a class for every pixel of {predictions / name}", void)
    classes = judged.count([*given, *truth])
    tables = [confusion(*pair, classes) for pair in zip(truth, given, strict=True)]
    missing = sorted({*truths} - {*names})
    note = f"{len(missing)} of {len(truths)} masks have no prediction and do not count: {some(missing)}"
    files = {"ground_truth": str(ground_truth), "predictions": str(predictions)}
    numbers = {**files, **judged.numbers(classes)}
    return _report(tables, "standard", numbers, (note,) if missing else (), names)


def score_features(
    path: Path, judged: Judged, k: int | None, temperature: float | None, memory: int | None, protocol: str
) -> ScoreReport:
    """Mean IoU and accuracies in percent of k-NN on the cells of training images; raises InputError.

    The archive has train and test, grids [images height width dim], and train_masks and test_masks, [images
    rows columns] uint8. Of ``memory`` cells, the ``k`` nearest vote with weight exp(cos / temperature); None
    means the number of the protocol. Under hummingbird, pixels of 255 are background in the memory, so that
    any cell may be remembered, predicted classes are renumbered, and the mean is over all classes.
    """
    (train, test), masks = _read(path)
    hummingbird = protocol == "hummingbird"
    classes, memory = judged.count(masks), memory or VOC_2012.memory
    known = np.where(masks[0] == VOID, np.uint8(0), masks[0]) if hummingbird else judged.truth(masks[0])
    config = SegmentationTask.configs["standard"]
    draw = max(1, memory // len(train)), 0.0 if hummingbird else config.least, config.seed
    chosen = [
        in_context.remembered_cells(cell_counts(mask, grid.shape[:2], classes), str(number), *draw)
        for number, (grid, mask) in enumerate(zip(train, known, strict=True))
    ]
    pairs = zip(train, chosen, strict=True)
    vectors = np.concatenate([grid.reshape(-1, grid.shape[-1])[cells] for grid, (cells, _) in pairs])
    rows = functional.normalize(torch.from_numpy(vectors).float(), dim=-1)
    require(len(rows), f"cells with a class in half of their pixels in train_masks of {path}")
    labels = in_context.label_vectors(np.concatenate([pixels for _, pixels in chosen]))
    usual = config.vote
    how = replace(usual, k=k or usual.k, temperature=temperature or usual.temperature)
    tables = [_voted(*pair, rows, labels, how) for pair in zip(test, judged.truth(masks[1]), strict=True)]
    numbers: dict[str, Json] = {"features": str(path), "k": how.k, "temperature": how.temperature}
    numbers |= {"memory": memory, "seed": config.seed, "cells": len(rows), **judged.numbers(classes)}
    return _report(tables, protocol, numbers)


def score_by_pixels(features: Path, judged: Judged, rule: capi.CapiConfig, memory: int | None) -> ScoreReport:
    """Mean IoU, over classes in truth or prediction, and accuracies in percent of a vote of pixels.

    The archive is that of `score_features`; masks have a whole number of pixels per cell, the same in train
    and test. The view of the config is not used. Images are drawn, and held out, by their indices. Also
    raises InputError if there is nothing to remember or to validate on.
    """
    memory = memory or VOC_2012.memory
    (train, test), (known, truth) = _read(features)
    sizes = [(*mask.shape[1:], *grid.shape[1:3]) for grid, mask in ((train, known), (test, truth))]
    a_cell = {(rows / height, columns / width) for rows, columns, height, width in sizes}
    require(
        len(a_cell) == 1 and not any(side % 1 for sides in a_cell for side in sides),
        f"masks with a whole number of pixels a cell, the same in train and test of {features}",
        f"{known.shape[1:]} and {truth.shape[1:]} pixels of {train.shape[1:3]} and {test.shape[1:3]} cells",
        "resize them as the images that the features are of",
    )
    classes, keys = judged.count([known, truth]), [str(number) for number in range(len(train))]
    pixels = capi.pixels_of(keys, rule, classes, frozenset((*judged.ignored, VOID)), memory)
    left = []
    for key, grid, mask in zip(keys, train, known, strict=True):
        cells = pixels.of(mask, (grid.shape[0], grid.shape[1]), key)
        kept = capi.arrays_of_image(torch.from_numpy(grid), *cells, held_out=key in pixels.held_out)
        left.append({name: array.numpy() for name, array in kept.items()})
    with explaining(f"cannot score {features}", ValueError):
        chosen = capi.voting_memory(left, torch.device("cpu"), pixels, rule)
    numbers: dict[str, Json] = {"features": str(features), "k": chosen.k, "distance": chosen.distance}
    numbers |= {"memory": memory, "seed": rule.seed, "cells": len(chosen.rows)}
    numbers |= {"held_out": sorted(map(int, pixels.held_out)), **judged.numbers(classes)}
    note = f"{chosen.k} cells vote, found by {chosen.distance}, as fits held-out images of train best."
    tables = []
    for grid, mask in zip(test, truth, strict=True):
        given = chosen.vote(torch.from_numpy(grid).float().flatten(0, 1)).view(*grid.shape[:2], -1)
        tables.append(np.asarray(capi.confusion_of(mask, given, pixels)))
    return _report(tables, "capi", numbers, (note,))


def _read(features: Path) -> tuple[tuple[Floats, Floats], tuple[Labels, Labels]]:
    """Grids and masks of train and test, which match each other; raises InputError."""
    arrays = read_archive(features, ARRAYS)
    train, test = in_range(
        [as_floats(arrays[name], f"{name} of {features}", "[n h w dim]") for name in GRIDS]
    )
    known, judged = (
        _masks(arrays[f"{name}_masks"], f"{name}_masks of {features}", len(grid))
        for name, grid in zip(GRIDS, (train, test), strict=True)
    )
    widths = f"{train.shape[-1]} and {test.shape[-1]}"
    require(train.shape[-1] == test.shape[-1], f"train and test of one width in {features}", widths)
    if unusable(test.reshape(-1, test.shape[-1])):  # type: ignore[arg-type]
        raise InputError(f"expected features that tell cells apart in {features}, but {ALIKE}")
    return (train, test), (known, judged)


def _voted(grid: Floats, truth: Labels, rows: Tensor, labels: Tensor, how: in_context.Vote) -> Integers:
    queries = functional.normalize(torch.from_numpy(grid).float().flatten(0, 1), dim=-1)
    voted = in_context.vote_labels(most_similar(queries, rows, how.k), labels, how.temperature)
    given = label_map(voted.view(*grid.shape[:2], -1), (truth.shape[1], truth.shape[0]))
    return confusion(truth, given, labels.shape[1])


def _report(
    tables: Sequence[Integers],
    protocol: str,
    parameters: dict[str, Json],
    notes: tuple[str, ...] = (),
    names: Sequence[str] = (),
) -> ScoreReport:
    """Scores as the task computes them from confusion matrices of images, and the IoU of each true class."""
    table = np.sum(tables, axis=0)
    order = names_of_predictions(table)
    plain = Overlaps.of(table)
    means: dict[Over, float] = {"classes": plain.mean_iou(), "seen classes": plain.mean_iou("seen")}
    over: Over = "seen classes" if protocol == "capi" else "classes"
    if protocol != "capi":  # one of whose classes is never predicted
        means["all classes"] = Overlaps.of(table[:, order]).mean_iou("all")
    if protocol == "hummingbird":
        over, tables = "all classes", [each[:, order] for each in tables]
    keys = names or [f"{row:08d}" for row in range(len(tables))]
    overlaps = Overlaps.of(np.sum(tables, axis=0))
    return outcome_report(
        outcome_of({"": Overlaps.of(np.stack(tables))}, keys, over),
        next(iter(parameters.values())),
        protocol=protocol,
        parameters=parameters,
        more={MEANS[each]: 100.0 * value for each, value in means.items() if each != over},
        notes=notes,
    ).with_parts(
        *("class", "classes"),
        {str(row): {"IoU": 100.0 * float(overlaps.iou[row])} for row in np.flatnonzero(overlaps.truth)},
    )


def _masks(array: Array, where: str, images: int) -> Labels:
    has_shape = array.ndim == 3 and len(array) == images and 0 not in array.shape
    require(has_shape, f"{where} to have the shape [{images} rows columns]", in_brackets(array.shape))
    require(array.dtype.kind in "biu", f"whole numbers as {where}", f"the type {array.dtype}")
    low, high = int(array.min()), int(array.max())
    require(0 <= low <= high <= VOID, f"classes of 0 to {VOID} in {where}", f"{low} to {high}")
    return array.astype(np.uint8)
