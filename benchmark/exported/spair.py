"""PCK on SPair-71k of exported feature grids or of keypoints that any code predicted."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.benchmark.exported.arrays import as_floats, read_array
from layerboard.benchmark.exported.report import Json, ScoreReport, one_of, outcome_report
from layerboard.tasks.datasets.integrity import mismatch, numbers, require
from layerboard.tasks.datasets.reading.files import require_directory
from layerboard.tasks.datasets.spair import KeypointPair, SpairEntry
from layerboard.tasks.framework.base import Measurements
from layerboard.tasks.framework.checks import unusable
from layerboard.tasks.framework.protocols import find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.places import point_geometry, true_places
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.tasks.metrics.arrays import in_range
from layerboard.zoo.errors import InputError, shortened, some
from layerboard.zoo.reading import read_as
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Letterbox

# separators before the category in a pair's file name: not every file system allows the official colon
SEPARATORS = ":?_"

EXPORTED = Layer(1)  # exported features are of one layer, whichever it is
LARGEST_VIEW = 2048  # maximum side in pixels; each keypoint is compared with every pixel of the view


def score_spair(
    ground_truth: Path, features: Path | None, predictions: Path | None, protocol: str, view_size: int | None
) -> ScoreReport:
    """PCK in percent of matches between grids of features, or of predicted keypoints; raises InputError.

    The ground truth is the folder of SPair-71k, of which the test pairs count; ``view_size`` is that of the
    view, None for the protocol's.
    """
    name, path = one_of(features=features, predictions=predictions)
    folder = ground_truth.resolve()
    data = SpairEntry(folder=folder.name).read(folder.parent)
    task = KeypointTask(data, config_of(find_protocol(protocol), "spair"), protocol=protocol)
    if name == "features":
        return _score_features(path, task, view_size)
    return _report(task, _of_predictions(path, task), {name: str(path)})


def _score_features(features: Path, task: KeypointTask, view_size: int | None) -> ScoreReport:
    """PCK of matches between grids of features, read image by image.

    The folder has ``<category>/<image>.npy`` or ``<image>.npy``, each [side side dim]: features of the whole
    square view, for any side. The image is centred in the view; its longer side in pixels is ``view_size``,
    or that of the protocol for None.
    """
    view = task.config.view
    if view_size is not None:
        sizes = f"view_size of 1 to {LARGEST_VIEW:,} pixels"
        require(1 <= view_size <= LARGEST_VIEW, sizes, view_size, "images of SPair-71k have at most 500")
        if not isinstance(view, Letterbox):
            raise InputError(f"{task.protocol} shows images at its own size; leave out view_size")
        view = Letterbox(view_size)
    paths, measured = _grid_paths(features, task), []
    for group in task.source.groups:
        grids = [_read_grid(paths[sample.key]) for sample in group.samples]
        widths = sorted({grid.shape[2] for grid in grids})
        several = f"grids of one width for all images of {group.key}"
        require(len(widths) == 1, several, some(map(str, widths)))
        measurer = task.measure(group, view)
        for position, grid in enumerate(grids):  # one by one, since their sizes may differ
            measurer.update(EXPORTED, [position], grid[None])
        measured.append({name: array.numpy() for name, array in measurer.finish(EXPORTED).items()})
    return _report(task, measured, {"features": str(features), "view_size": view.geometry((1, 1)).size[0]})


def _of_predictions(predictions: Path, task: KeypointTask) -> list[Measurements]:
    """Distances of predicted keypoints, of each category.

    The predictions are a JSON object: for the file name of every pair without its extension, [x, y] in pixels
    of the target image for each keypoint, in the order of the annotation.
    """
    content = read_as(dict[str, object], predictions)
    given: dict[str, object] = {}
    for pair in chain.from_iterable(task.pairs.values()):
        stem = pair.key.removesuffix(f":{pair.category}")
        names = [f"{stem}{separator}{pair.category}" for separator in SEPARATORS]
        given[pair.key] = next((content[name] for name in names if name in content), None)
    missing = [key for key, points in given.items() if points is None]
    require(
        not missing,
        f"predicted keypoints of all {len(given):,} pairs in {predictions}",
        f"none for {len(missing):,} of them ({some(missing)})",
        "name them as the pairs' files, without .json",
    )
    return [
        _distances(task, [(pair, _as_points(given[pair.key], pair, predictions)) for pair in pairs])
        for pairs in task.pairs.values()
    ]


def _as_points(given: object, pair: KeypointPair, path: Path) -> NDArray[np.float64]:
    """Predicted points of a pair, [keypoints 2]; raises InputError."""
    listed = [numbers(point) for point in given] if isinstance(given, list) else []
    count = len(pair.target_points)
    wanted = f"a list of {count} points [x, y] of finite numbers for pair {pair.key} in {path}"
    if len(listed) != count or any(point is None or len(point) != 2 for point in listed):
        raise mismatch(wanted, shortened(given))
    return np.array(listed, np.float64)


def _grid_paths(features: Path, task: KeypointTask) -> dict[str, Path]:
    """The file of every image that a pair needs, by its key; raises InputError."""
    require_directory(features, "a folder of grids (.npy)")
    names = {sample.key: Path(sample.key).with_suffix(".npy") for sample in task.source.samples}
    paths = {
        key: path
        for key, name in names.items()
        if (path := next(filter(Path.is_file, (features / name, features / name.name)), None))
    }
    missing = [str(name) for key, name in sorted(names.items()) if key not in paths]
    form = f"of each of the {len(names):,} images in {features}, as <category>/<image>.npy or <image>.npy"
    require(not missing, f"a grid {form}", f"none for {len(missing):,} ({some(missing)})")
    return paths


def _read_grid(path: Path) -> Tensor:
    """Features of one image, [side side dim] float32; raises InputError."""
    grid = as_floats(read_array(path), f"grid {path}", "[height width dim]")
    rows, columns, width = grid.shape
    square = f"as many rows as columns in grid {path}, as the view is square"
    require(rows == columns, square, f"{rows} and {columns}")
    if reason := unusable(grid.reshape(-1, width)):  # type: ignore[arg-type]
        raise InputError(f"expected features that tell places apart in grid {path}, but the {reason}")
    return torch.from_numpy(in_range([grid])[0]).float()


def _distances(
    task: KeypointTask, predicted: Sequence[tuple[KeypointPair, NDArray[np.float64]]]
) -> Measurements:
    """Distances of points to the ground truth of the protocol, [keypoints] of all pairs.

    They are relative to the longer side of the target's box (``error_box``) and of its image
    (``error_image``).
    """
    by_box, by_image = [], []
    for pair, points in predicted:
        _, truth = true_places(
            task.config, pair.target_points, point_geometry(task.config.view, pair.target_size)
        )
        distances = np.linalg.norm(points - truth, axis=1)
        left, top, right, bottom = pair.target_box
        by_box.append(distances / max(right - left, bottom - top))
        by_image.append(distances / max(pair.target_size))
    errors = {"error_box": np.concatenate(by_box), "error_image": np.concatenate(by_image)}
    return {**errors, "varies": np.ones(1, bool)}


def _report(task: KeypointTask, measured: Sequence[Measurements], facts: dict[str, Json]) -> ScoreReport:
    """The scores of a task, and the PCK of each category."""
    coverage, categories = task.data.coverage, dict[str, dict[str, float]]()
    for name, of_category in zip(task.pairs, measured, strict=True):
        distances = np.asarray(of_category["error_box"], np.float64)
        hits = {f"PCK@{alpha:g}": float(task.hits(distances, alpha).mean()) for alpha in task.config.alphas}
        categories[name] = {"pairs": len(task.pairs[name]), "keypoints": len(distances), **hits}
    return outcome_report(
        task.score(measured),
        task.data.name,
        protocol=task.protocol,
        parameters={"dataset": task.data.name, **facts},
        notes=(f"not the whole test split: {coverage}",) if coverage.partial else (),
    ).with_parts("category", "categories", categories)
