"""J and F of masks that any code predicted for DAVIS."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from layerboard.benchmark.exported.report import ScoreReport, outcome_report
from layerboard.tasks.datasets.davis import DAVIS_2017_VAL
from layerboard.tasks.datasets.integrity import explaining, require
from layerboard.tasks.datasets.reading.files import file_names, folder_names, image_size, require_directory
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.framework.base import Outcome, Score
from layerboard.tasks.metrics.arrays import VOID
from layerboard.tasks.propagation.j_and_f import VideoScores, score_video, statistics
from layerboard.tasks.propagation.task import object_items
from layerboard.zoo.errors import some

Pair = tuple[Path, Path]  # an annotated and a predicted mask


def score_davis(ground_truth: Path, predictions: Path) -> ScoreReport:
    """Official scores in percent, over all objects and per object, of every predicted sequence.

    The ground truth is DAVIS, its ``Annotations``, or a folder of ``<sequence>/*.png``, as predictions are;
    pixel values are object ids. Raises InputError if a file is missing, or if masks do not match.
    """
    videos = {name: _score(name, each) for name, each in read_results(ground_truth, predictions).items()}
    objects = dict[tuple[str, int], dict[str, float]]()
    for name, video in videos.items():
        for number, (j, f) in enumerate(zip(video.j, video.f, strict=True), start=1):
            columns = {
                f"{letter}-{column}": 100.0 * getattr(measure, column.lower())
                for letter, measure in (("J", statistics(j)), ("F", statistics(f)))
                for column in ("Mean", "Recall", "Decay")
            }
            objects[name, number] = {"J&F-Mean": (columns["J-Mean"] + columns["F-Mean"]) / 2, **columns}
    rows = [*objects.values()]
    values = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    items = object_items([*objects], values)
    scores = (Score(name, float(each.mean()), len(each), "objects") for name, each in values.items())
    return outcome_report(
        Outcome(tuple(scores), items),
        predictions,
        protocol="official",
        parameters={"ground_truth": str(ground_truth), "predictions": str(predictions)},
        notes=_unpredicted(ground_truth, [*videos]),
    ).with_parts("object", "objects", dict(zip(items.keys, rows, strict=True)))


def read_results(truth: Path, predictions: Path) -> dict[str, list[Pair]]:
    """Annotated and predicted masks of each predicted sequence with annotations; raises InputError.

    ``truth`` is DAVIS, its ``Annotations``, or any folder of ``<sequence>/*.png``. ``predictions`` is such a
    folder, too; frames without annotations are ignored.
    """
    require_directory(truth, "annotated masks (DAVIS, or a folder of <sequence>/*.png)")
    require_directory(predictions, "predicted masks (<sequence>/*.png)")
    root = _annotations(truth)
    annotated, predicted = folder_names(root), folder_names(predictions)
    common = [name for name in predicted if name in annotated]
    wanted = f"the sequences of {root} ({some(annotated) or 'none there'})"
    require(common, f"folders in {predictions} that are named after {wanted}", some(predicted) or "none")
    return {name: _pairs(root / name, predictions / name) for name in common}


def _annotations(truth: Path) -> Path:
    """The folder of ``<sequence>/*.png`` in DAVIS, in its ``Annotations``, or the folder itself."""
    candidates = (truth / "Annotations" / "480p", truth / "480p", truth)
    return next(folder for folder in candidates if folder.is_dir() or folder == truth)


def _pairs(truth: Path, predictions: Path) -> list[Pair]:
    """The masks of a sequence, of one size each; raises InputError."""
    masks = file_names(truth, (".png",))
    require(masks, f"annotated masks (*.png) in {truth}")
    missing = sorted({*masks} - {*file_names(predictions, (".png",))})
    remedy = "export every frame under the name of its annotation"
    wanted = f"a predicted mask in {predictions} for every mask in {truth}"
    require(not missing, wanted, f"none for {some(missing)}", remedy)
    pairs = [(truth / mask, predictions / mask) for mask in masks]
    for pair in pairs:
        require_same_size(*pair)
    return pairs


def require_same_size(annotation: Path, prediction: Path) -> None:
    """Raise InputError unless a predicted mask has the size of its annotation."""
    wanted, size = ("{} x {}".format(*image_size(path)) for path in (annotation, prediction))
    expected = f"predicted mask {prediction} to be {wanted} pixels as its annotation"
    require(size == wanted, expected, size, "export masks at the size of the frames")


def _unpredicted(ground_truth: Path, predicted: Sequence[str]) -> tuple[str, ...]:
    """A note on the sequences of the ground truth that have no prediction."""
    listed = ground_truth / DAVIS_2017_VAL.subset
    if listed.is_file():
        every = {*map(str.strip, listed.read_text(encoding="utf-8", errors="replace").splitlines())} - {""}
    else:
        every = {*folder_names(_annotations(ground_truth))}
    missing = sorted(every - {*predicted})
    note = f"{len(missing)} of {len(every)} sequences have no prediction and do not count: {some(missing)}"
    return (note,) if missing else ()


def _score(name: str, pairs: Sequence[Pair]) -> VideoScores:
    """J and F of one sequence, whose masks are in memory; raises InputError."""
    truths, predictions = ([read_mask(path) for path in paths] for paths in zip(*pairs, strict=True))
    objects = truths[0][truths[0] != VOID].max(initial=0)
    void = f"{VOID} (void), which only annotations may hold and the official evaluator refuses"
    for (_, path), mask in zip(pairs[1:-1], predictions[1:-1], strict=True):
        require(not (mask == VOID).any(), f"object ids in {path}", void, "export background as 0")
        ids = f"object ids up to {objects} in {path}, as in the first annotation of {name}"
        require(mask.max(initial=0) <= objects, ids, f"{mask.max(initial=0)}")
    with explaining(f"cannot score sequence {name} in {pairs[0][1].parent}", ValueError):
        return score_video(predictions, truths)
