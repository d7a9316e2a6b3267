"""Labels of cells, their vote and mean IoU against the evaluations that their authors published."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from layerboard.tasks.metrics.arrays import VOID
from layerboard.tasks.metrics.cell_labels import cell_counts, chosen_cells, label_map, shares, usable_cells
from layerboard.tasks.metrics.memory_search import most_similar
from layerboard.tasks.segmentation.capi import (
    Distance,
    Scale,
    comparable_queries,
    judged_cells,
    pixel_labels,
    pixel_vote,
    remembered,
)
from layerboard.tasks.segmentation.in_context import vote_labels
from layerboard.tasks.segmentation.overlaps import (
    Overlaps,
    confusion,
    mean_iou_of_labels,
    names_of_predictions,
)
from tests.reference import inputs_segment
from tests.tasks.agreement import golden
from tests.tasks.agreement.base import OFFICIAL, OWN, Agreement, Finding, close, exact, gathered

CASES = golden.cases("segment")
POINTS = 1e-4  # percent; no pixel of these cases is as good as undecided
Arrays = Mapping[str, NDArray[Any]]


def build(name: str) -> Arrays:
    return golden.build(CASES[name], inputs_segment)


def compare(name: str) -> list[Finding]:
    """Findings of one case."""
    ways = {"metric": _scores_of_maps, "capi": _by_pixel}
    return gathered(ways.get(name.split("_")[0], _segmentations)(name))


def _ignored(masks: NDArray[np.uint8], ignore: list[int]) -> NDArray[np.uint8]:
    return np.where(np.isin(masks, ignore), np.uint8(VOID), masks)


def _scores_of_maps(name: str) -> Iterator[Finding]:
    case, data = CASES[name], build(name)
    classes, expected = case["params"]["classes"], case["expected"]
    truth = _ignored(data["gt"], case["params"]["ignore"])
    tables = np.stack([confusion(*pair, classes) for pair in zip(truth, data["pred"], strict=True)])
    yield from _standard(tables, expected["own_standard"])
    yield from _hummingbird(tables.sum(0), expected["official_hummingbird"])
    seen = 100 * Overlaps.of(tables.sum(0)).mean_iou("seen")
    official = expected["official_capi"]
    yield close("mIoU over classes that are shown or predicted", OFFICIAL, seen, official["mIoU"], 1e-9)
    accuracy = 100 * Overlaps.of(tables.sum(0)).accuracy()
    yield close("pixel accuracy", OFFICIAL, accuracy, official["acc"], 1e-9)


def _standard(tables: NDArray[np.int64], expected: Mapping[str, Any]) -> Iterator[Finding]:
    each, every = Overlaps.of(tables), Overlaps.of(tables.sum(0))
    yield close("mIoU", OWN, 100 * every.mean_iou(), expected["mIoU"], POINTS)
    if "pixel_accuracy" in expected:
        yield close("pixel accuracy", OWN, 100 * every.accuracy(), expected["pixel_accuracy"], POINTS)
        yield close("mean accuracy", OWN, 100 * every.mean_accuracy(), expected["mean_accuracy"], POINTS)
    for array, key in (
        (each.truth, "ground_truth"),
        (each.intersection, "intersection"),
        (each.union, "union"),
    ):
        yield exact("pixels of images and classes", OWN, array, expected[f"image_{key}"])


def _hummingbird(table: NDArray[np.int64], expected: Mapping[str, Any]) -> Iterator[Finding]:
    if "mIoU" not in expected:
        return
    yield exact("confusion matrix", OFFICIAL, table, expected["confusion_rows_gt"])
    plain = 100 * Overlaps.of(table).mean_iou("all")
    yield close("mIoU over all classes", OFFICIAL, plain, expected["mIoU_without_matching"], POINTS)
    matched = 100 * Overlaps.of(table[:, names_of_predictions(table)]).mean_iou("all")
    yield close("mIoU after renaming", OFFICIAL, matched, expected["mIoU"], POINTS)


def _segmentations(name: str) -> Iterator[Finding]:
    case, data = CASES[name], build(name)
    params = case["params"]
    for k, expected in case["expected"].items():
        if "own_standard" in expected:
            own, masks = expected["own_standard"], [data[f"{part}_masks"] for part in ("train", "val")]
            train, val = (_ignored(one, params["ignore"]) for one in masks)
            yield from _voted(data, train, val, params, int(k), own, OWN)
        official = expected.get("official_hummingbird", {})
        if "mIoU" in official:
            train = np.where(data["train_masks"] == VOID, np.uint8(0), data["train_masks"])
            ignore = [params.get("hummingbird_ignore_index", VOID)]
            val = _ignored(data["val_masks"], ignore)
            yield from _voted(data, train, val, params, int(k), official, OFFICIAL)


def _voted(
    data: Arrays,
    train: NDArray[np.uint8],
    val: NDArray[np.uint8],
    params: Mapping[str, Any],
    k: int,
    expected: Mapping[str, Any],
    against: str,
) -> Iterator[Finding]:
    classes, grid = params["classes"], data["train_features"].shape[1:3]
    rows, labels, chosen = [], [], []
    for number, (features, mask) in enumerate(zip(data["train_features"], train, strict=True)):
        counts = cell_counts(mask, grid, classes).reshape(-1, classes + 1)
        usable = usable_cells(counts, 0.5)
        cells = np.flatnonzero(usable)
        if "cells_per_image" in params:
            draws = data["noise"][number].astype(np.float64)
            cells = chosen_cells(counts, usable, draws, params["cells_per_image"])
        rows.append(features.reshape(len(counts), -1)[cells])
        labels.append(shares(counts)[cells])
        chosen.append(cells.tolist())
    memory = functional.normalize(torch.from_numpy(np.concatenate(rows)), dim=-1)
    names = torch.from_numpy(np.concatenate(labels)).float()
    yield exact("rows of the memory", against, len(memory), expected["memory_rows"])
    for key in ("selected_cells", "sampled_cells_in_order"):
        if isinstance(expected.get(key), list):
            yield exact("cells that are kept", against, chosen, [sorted(one) for one in expected[key]])
    if "memory_label_sum_per_class" in expected:
        yield close("sum of labels", against, names.sum(0), expected["memory_label_sum_per_class"], 1e-3)
    tables = []
    for number, (features, truth) in enumerate(zip(data["val_features"], val, strict=True)):
        queries = functional.normalize(torch.from_numpy(features), dim=-1).flatten(0, 1)
        voted = vote_labels(most_similar(queries, memory, k), names, params["temperature"])
        if not number:
            first = expected["label_vectors_image0_cells0to3"]
            yield close("label vectors", against, voted[:4], first, 1e-5)
        predicted = label_map(voted.view(*grid, classes), (truth.shape[1], truth.shape[0]))
        tables.append(confusion(truth, predicted, classes))
    table = np.stack(tables)
    if against == OFFICIAL:
        yield from _hummingbird(table.sum(0), expected)
        return
    yield from _standard(table, expected)
    ceiling = [_ceiling(mask, grid, classes) for mask in val]
    found = 100 * Overlaps.of(np.stack(ceiling).sum(0)).mean_iou()
    yield close("ceiling", OWN, found, expected["ceiling_mIoU"], POINTS)


def _ceiling(mask: NDArray[np.uint8], grid: tuple[int, int], classes: int) -> NDArray[np.int64]:
    own = torch.from_numpy(shares(cell_counts(mask, grid, classes))).float()
    return confusion(mask, label_map(own, (mask.shape[1], mask.shape[0])), classes)


@dataclass(frozen=True)
class _Cells:
    """Standardised features [cells dim] and labels [cells pixels] of some images."""

    features: torch.Tensor
    labels: NDArray[np.uint8]

    def judged(self, ignored: frozenset[int]) -> "_Cells":
        """Those that a memory takes."""
        keep = judged_cells(self.labels, ignored)
        return _Cells(self.features[torch.from_numpy(keep)], self.labels[keep])

    def predicted(self, memory: Sequence["_Cells"], k: int, distance: Distance) -> NDArray[np.uint8]:
        """Labels [cells pixels] by a vote of memories, one after the other."""
        rows = torch.cat([one.features for one in memory])
        names = torch.from_numpy(np.concatenate([one.labels for one in memory]))
        found = pixel_vote(
            most_similar(comparable_queries(self.features, distance), remembered(rows, distance), k), names
        )
        return np.asarray(found.numpy())


def _by_pixel(name: str) -> Iterator[Finding]:
    case, data = CASES[name], build(name)
    params, expected = case["params"], case["expected"]["official_capi"]
    grid, dim = data["train_features"].shape[1:3], data["train_features"].shape[3]
    held = params["held_out_images"]
    kept = [number for number in range(len(data["train_features"])) if number not in held]
    fitted = data["train_features"][kept].reshape(-1, dim).astype(np.float64)
    scale = Scale.of(len(fitted), fitted.sum(0), (fitted * fitted).sum(0))
    ignored = frozenset(params["ignore"])

    def cells(part: str, images: Sequence[int]) -> _Cells:
        masks = data[f"{part}_masks"][images]
        labels = [pixel_labels(mask, grid).reshape(grid[0] * grid[1], -1) for mask in masks]
        features = torch.from_numpy(data[f"{part}_features"][images].reshape(-1, dim))
        return _Cells(scale.apply(features), np.concatenate(labels))

    memory, asked = cells("train", kept).judged(ignored), cells("train", held)
    shares = {}
    for k in params["k"]:
        for distance in params["distance"]:
            found = asked.predicted([memory], k, distance)
            shares[k, distance] = 100 * mean_iou_of_labels(asked.labels, found, ignored)
            official = expected["held_out_mIoU"][f"mIoU_num_neighbors={k}_distance={distance}"]
            yield close("mIoU of held-out images", OFFICIAL, shares[k, distance], official, 1e-9)
    best = max(shares, key=lambda choice: shares[choice])
    yield exact(
        "chosen k and distance",
        OFFICIAL,
        [str(one) for one in best],
        [str(one) for one in expected["chosen"]],
    )
    both, val = [memory, asked.judged(ignored)], cells("val", range(len(data["val_features"])))
    yield exact("rows of the memory", OFFICIAL, sum(len(one.labels) for one in both), expected["memory_rows"])
    for choice, official in expected["test"].items():
        k, distance = choice.removeprefix("k=").split(",")
        found = val.predicted(both, int(k), distance)
        score = 100 * mean_iou_of_labels(val.labels, found, ignored)
        yield close("mIoU by a vote of pixels", OFFICIAL, score, official["mIoU"], 1e-9)
        yield exact("labels of the first cell", OFFICIAL, found[0], official["first_patch_prediction"])


AGREEMENT = Agreement(
    title="In-context segmentation",
    module="tasks/metrics/cell_labels.py`, `memory_search.py` and `tasks/segmentation",
    file="segment",
    recipes={
        "voc_like_whole_memory": "rectangles of 6 classes with a rim without a class; a memory of all cells",
        "voc_like_bounded_memory": "the same; 9 cells an image",
        "ade_like_zero_ignored": "6 classes, of which pixels of class 0 are not judged",
        "capi_voc_like": "the first case by a vote of pixels; 4 numbers of neighbours, 2 distances",
        "capi_ade_like": "the third case by a vote of pixels",
        "planted_stripes": "features are the class; every column of cells is of one class",
        "planted_one-hot": "features are the class, which every cell draws by itself",
        "planted_constant": "all features are equal",
        "planted_swapped": "features are the class; the classes of the memory have exchanged names",
        "metric_class_only_predicted_and_class_absent": "label maps; one class is only predicted",
        "metric_two_classes_swapped": "label maps; two classes have exchanged names",
        "metric_zero_ignored": "label maps; pixels of class 0 are not judged",
    },
    compare=compare,
    sources=(
        "vpariza/open-hummingbird-eval at `5e79da2`",
        "facebookresearch/capi at `98b4fa1`",
        "facebookresearch/dinov3 at `6876159`",
    ),
    notes=(
        "The official search is approximate by default; for these numbers an exact one took its place.",
        "By choice: `standard` averages over the classes that the truth shows, and renames none; pixels "
        "without a class do not become background.",
        "Where all features are equal the official result depends on which of equal rows the search returns; "
        "here the first ones count.",
    ),
)
