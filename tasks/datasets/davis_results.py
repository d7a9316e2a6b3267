"""Masks that somebody else's code predicted for DAVIS, beside their annotations."""

from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import require_directory
from tasks.datasets.files import file_names, folder_names, image_size, some
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class PredictedSequence:
    """Annotation masks of one sequence and the predicted masks of the same frames, in order."""

    name: str
    truth: tuple[Path, ...]
    predictions: tuple[Path, ...]


def read_davis_results(
    truth: Path, predictions: Path, resolution: str = "480p"
) -> tuple[PredictedSequence, ...]:
    """Predicted masks beside their annotations, for every predicted sequence that has some, by sorted name.

    Args:
        truth: DAVIS, its ``Annotations``, or any folder of ``<sequence>/*.png``.
        predictions: Folder of ``<sequence>/*.png``; further frames than the annotated ones are ignored.
        resolution: Folder in ``Annotations``.

    Raises:
        InputError: No folder, no common sequence, a frame without a prediction or one of another size.
    """
    require_directory(truth, "annotated masks (DAVIS, or a folder of <sequence>/*.png)")
    require_directory(predictions, "predicted masks (<sequence>/*.png)")
    root = annotation_folder(truth, resolution)
    annotated = set(folder_names(root))
    common = [name for name in folder_names(predictions) if name in annotated]
    if not common:
        raise InputError(
            f"expected folders in {predictions} that are named after the sequences of {root} "
            f"({some(sorted(annotated)) or 'none there'}), found {some(folder_names(predictions)) or 'none'}"
        )
    return tuple(_read_prediction(name, root / name, predictions / name) for name in common)


def annotation_folder(truth: Path, resolution: str = "480p") -> Path:
    """The folder of ``<sequence>/*.png`` in DAVIS, in its ``Annotations``, or the folder itself."""
    candidates = (truth / "Annotations" / resolution, truth / resolution, truth)
    return next(folder for folder in candidates if folder.is_dir() or folder == truth)


def _read_prediction(name: str, truth: Path, predictions: Path) -> PredictedSequence:
    masks = file_names(truth, (".png",))
    if not masks:
        raise InputError(f"expected annotated masks (*.png) in {truth}, found none")
    missing = sorted(set(masks) - set(file_names(predictions, (".png",))))
    if missing:
        raise InputError(
            f"expected a predicted mask in {predictions} for every mask in {truth}, "
            f"found none for {some(missing)}; export every frame under the name of its annotation"
        )
    for mask in masks:
        expected, found = image_size(truth / mask), image_size(predictions / mask)
        if expected != found:
            raise InputError(
                f"expected predicted mask {predictions / mask} to be {expected[0]} x {expected[1]} pixels as "
                f"its annotation, found {found[0]} x {found[1]}; export masks at the size of the frames"
            )
    return PredictedSequence(
        name, tuple(truth / mask for mask in masks), tuple(predictions / mask for mask in masks)
    )
