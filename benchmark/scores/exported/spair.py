"""PCK on SPair-71k of exported feature grids or of keypoints that any code predicted."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from benchmark.scores.exported.arrays import as_floats, read_array
from benchmark.scores.exported.report import Grid, Json, ScoreReport
from tasks.checks import unusable
from tasks.datasets.fields import JsonObject, numbers, read_json
from tasks.datasets.files import describe, some
from tasks.datasets.spair import KeypointPair, SpairEntry
from tasks.keypoints.places import stated, true_places
from tasks.keypoints.problem import KeypointTask
from tasks.keypoints.rule import KeypointConfig
from tasks.protocols import find_protocol
from tasks.registry import config_of
from zoo.errors import InputError
from zoo.spec import Layer
from zoo.view.views import Letterbox

SEPARATORS = ":?_"
"""What may stand before the category in a pair's file name: not every system can hold the official colon."""

Errors = NDArray[np.float64]
CategoryErrors = dict[str, NDArray[np.generic]]
"""What a measurer of `KeypointTask` keeps of a category."""

Finder = Callable[[str], CategoryErrors]
"""Measures a category."""

LARGEST_VIEW = 2048
"""Pixels of a side; each keypoint is compared with every pixel of the view."""

EXPORTED = Layer(1)
"""Exported features are of one layer, whichever it is."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """The pairs that a protocol takes from a split, with the rule that scores them."""

    protocol: str
    problem: KeypointTask

    @property
    def pairs(self) -> tuple[KeypointPair, ...]:
        """Different pairs, category by category."""
        return tuple({pair.key: pair for pairs in self.problem.pairs.values() for pair in pairs}.values())


def read_dataset(root: Path, split: str, protocol: str) -> Dataset:
    """The task on a split of SPair-71k, whose own folder is the root; raises InputError."""
    folder = root.resolve()
    data = SpairEntry(folder=folder.name, split=split).read(folder.parent)
    return Dataset(protocol, KeypointTask(data, config_of(find_protocol(protocol), "spair")))


def score_features(features: Path, dataset: Dataset, view_size: int | None = None) -> ScoreReport:
    """PCK in percent of matches between grids of features, image by image from the disk.

    Args:
        features: Folder of ``<category>/<image>.npy`` or ``<image>.npy``, each [side side dim]: features of
            the whole square view, whatever their number.
        dataset: Of ``read_dataset``.
        view_size: Pixels of the longer side of the image, which is centred in a square view; the protocol's
            if None.

    Raises:
        InputError: A file is missing or wrong.
    """
    if view_size is not None and not 1 <= view_size <= LARGEST_VIEW:
        raise InputError(
            f"expected --view-size of 1 to {LARGEST_VIEW:,} pixels, found {describe(view_size)}; images of "
            "SPair-71k have at most 500"
        )
    problem = dataset.problem
    view = problem.config.view
    if view_size is not None and not isinstance(view, Letterbox):
        raise InputError(f"{dataset.protocol} shows images at its own size; leave out --view-size")
    view = view if view_size is None else Letterbox(view_size)
    side = view.geometry((1, 1)).size[0]
    paths = _grid_paths(features, problem)
    groups = {group.key: group for group in problem.source.groups}

    def find(category: str) -> CategoryErrors:
        grids = [_read_grid(paths[index]) for index in problem.images[category]]
        _require_one_width(category, grids)
        measurer = problem.measure(groups[category], view)
        for position, grid in enumerate(grids):  # one by one, since their sizes may differ
            measurer.update(EXPORTED, [position], grid[None])
        return {name: kept.numpy() for name, kept in measurer.finish(EXPORTED).items()}

    return _report(dataset, find, {"features": str(features), "view_size": side})


def score_predictions(predictions: Path, dataset: Dataset) -> ScoreReport:
    """PCK in percent of predicted keypoints.

    Args:
        predictions: JSON object: for every pair's file name without its ending, [x, y] in pixels of the
            target image for each keypoint, in the order of the annotation.
        dataset: Of ``read_dataset``.

    Raises:
        InputError: A pair is missing, or its points are.
    """
    given = read_json(predictions)
    found = {pair.key: _predicted(given, pair) for pair in dataset.pairs}
    missing = [key for key, points in found.items() if points is None]
    if missing:
        raise InputError(
            f"expected predicted keypoints of all {len(found):,} pairs in {predictions}, found none for "
            f"{len(missing):,} of them ({some(missing)}); name them as the pairs' files, without .json"
        )

    def find(category: str) -> CategoryErrors:
        pairs = dataset.problem.pairs[category]
        return _measured(
            pairs,
            [
                _distances(_as_points(found[pair.key], pair, predictions), pair, dataset.problem.config)
                for pair in pairs
            ],
        )

    return _report(dataset, find, {"predictions": str(predictions)})


def _predicted(given: JsonObject, pair: KeypointPair) -> object:
    """The entry of a pair, whatever stands before its category; None if there is none."""
    stem = pair.key.removesuffix(f":{pair.category}")
    names = [f"{stem}{separator}{pair.category}" for separator in SEPARATORS]
    return next((given[name] for name in names if name in given), None)


def _as_points(given: object, pair: KeypointPair, path: Path) -> NDArray[np.float64]:
    """Predicted points of a pair, [keypoints 2]; raises InputError."""
    listed = [numbers(point) for point in given] if isinstance(given, list) else []
    expected = len(pair.target_points)
    if len(listed) != expected or any(point is None or len(point) != 2 for point in listed):
        raise InputError(
            f"expected a list of {expected} points [x, y] of finite numbers for pair {pair.key} in {path}, "
            f"found {describe(given)}"
        )
    return np.array(listed, np.float64)


def _grid_paths(features: Path, problem: KeypointTask) -> dict[int, Path]:
    """The file of every image that a pair needs; raises InputError."""
    if not features.is_dir():
        raise InputError(f"expected a folder of grids (.npy) at {features}, which does not exist")
    paths: dict[int, Path] = {}
    missing: list[str] = []
    wanted = sorted({index for indices in problem.images.values() for index in indices})
    for index in wanted:
        name = Path(problem.data.samples[index].key).with_suffix(".npy")
        there = [path for path in (features / name, features / name.name) if path.is_file()]
        if there:
            paths[index] = there[0]
        else:
            missing.append(str(name))
    if missing:
        raise InputError(
            f"expected a grid of each of the {len(wanted):,} images in {features}, as "
            f"<category>/<image>.npy or <image>.npy, found none for {len(missing):,} ({some(missing)})"
        )
    return paths


def _read_grid(path: Path) -> Tensor:
    """Features of one image, [side side dim] float32; raises InputError."""
    grid = as_floats(read_array(path), f"grid {path}", "[height width dim]")
    if grid.shape[0] != grid.shape[1]:
        raise InputError(
            f"expected as many rows as columns in grid {path}, as the view is square, found {grid.shape[0]} "
            f"and {grid.shape[1]}"
        )
    if reason := unusable(grid.reshape(-1, grid.shape[2])):  # type: ignore[arg-type]
        raise InputError(f"expected features that tell places apart in grid {path}, but the {reason}")
    return torch.from_numpy(grid).float()


def _require_one_width(category: str, grids: Sequence[Tensor]) -> None:
    widths = sorted({grid.shape[2] for grid in grids})
    if len(widths) > 1:
        found = some(str(width) for width in widths)
        raise InputError(f"expected grids of one width for all images of {category}, found {found}")


def _distances(points: NDArray[np.float64], pair: KeypointPair, rule: KeypointConfig) -> Errors:
    """Distances of found points to where the rule takes the true ones to be, in image pixels: [keypoints]."""
    _, truth = true_places(rule, pair.target_points, stated(rule.view, pair.target_size))
    return np.asarray(np.linalg.norm(points - truth, axis=1))


def _report(dataset: Dataset, find: Finder, parameters: dict[str, Json]) -> ScoreReport:
    problem = dataset.problem
    measured = {category: find(category) for category in problem.pairs}
    outcome = problem.score(list(measured.values()))
    scores = {score.metric: score.value for score in outcome.scores}
    alphas = problem.config.alphas
    categories: dict[str, dict[str, float]] = {
        name: {
            "pairs": len(problem.pairs[name]),
            "keypoints": len(found["error_box"]),
            **{
                f"PCK@{a:g}": float(problem.hits(np.asarray(found["error_box"], np.float64), a).mean())
                for a in alphas
            },
        }
        for name, found in measured.items()
    }
    coverage = problem.data.coverage
    return ScoreReport(
        command="spair",
        protocol=dataset.protocol,
        parameters={"dataset": problem.data.name, **parameters},
        n=sum(int(row["keypoints"]) for row in categories.values()),
        unit="keypoints",
        scores=scores,
        grid=_grid(categories, scores, alphas),
        details={"coverage": str(coverage), "categories": categories},
        notes=(f"not the whole test split: {coverage}",) if coverage.partial else (),
    )


def _measured(pairs: Sequence[KeypointPair], errors: Sequence[Errors]) -> CategoryErrors:
    """Distances over the longer side of the target's box, and of its image: [keypoints] each."""
    boxes = [max(p.target_box[2] - p.target_box[0], p.target_box[3] - p.target_box[1]) for p in pairs]
    sides = [max(pair.target_size) for pair in pairs]
    scaled = {
        name: np.concatenate([error / length for error, length in zip(errors, lengths, strict=True)])
        for name, lengths in (("error_box", boxes), ("error_image", sides))
    }
    return {**scaled, "varies": np.ones(1, bool)}


def _grid(categories: dict[str, dict[str, float]], scores: dict[str, float], alphas: Sequence[float]) -> Grid:
    """A row for each category, then the means."""
    columns = [f"PCK@{alpha:g}" for alpha in alphas]
    count = [sum(int(row[name]) for row in categories.values()) for name in ("pairs", "keypoints")]
    kinds = {"mean over categories": "", "per image": " per image", "per keypoint": " per keypoint"}
    kinds["mean, image size"] = " image size"
    rows = {name: tuple(row.values()) for name, row in categories.items()}
    means = {
        name: (*count, *(scores[f"{column}{kind}"] for column in columns)) for name, kind in kinds.items()
    }
    return Grid("category", ("pairs", "keypoints", *columns), {**rows, **means})
