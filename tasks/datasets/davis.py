"""DAVIS-2017: frames in ``JPEGImages/480p/<sequence>``, masks in ``Annotations/480p/<sequence>``."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tasks.datasets.base import (
    Count,
    Coverage,
    Data,
    DatasetEntry,
    FileSample,
    Part,
    require_directory,
)
from tasks.datasets.files import (
    file_names,
    folder_names,
    image_size,
    is_folder,
    names_and_sizes,
    read_bytes,
    require_inside,
    some,
)
from tasks.datasets.masks import object_count, read_mask
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class Video:
    """Frames of one sequence and their annotation masks (palette PNG, pixel value = object id), by frame."""

    name: str
    frames: tuple[FileSample, ...]
    masks: tuple[Path, ...]
    size: tuple[int, int]
    """Width and height of frames and masks, which agree."""


@dataclass(frozen=True, slots=True)
class Videos(Data):
    """A DAVIS-2017 split."""

    name: str
    videos: tuple[Video, ...]
    coverage: Coverage

    def limited(self, limit: int | None) -> Self:
        """The first videos."""
        if limit is None or limit >= len(self.videos):
            return self
        return replace(self, videos=self.videos[:limit], coverage=self.coverage.limited(limit, "video"))

    @property
    def truth(self) -> tuple[object, ...]:
        """Names and sizes of the masks."""
        return (names_and_sizes(path for video in self.videos for path in video.masks),)


@dataclass(frozen=True, slots=True)
class DavisEntry(DatasetEntry[Videos]):
    """A dataset in the layout of DAVIS-2017, and its official counts.

    Attributes:
        name: Name of the dataset.
        folder: Its folder under the data folder.
        resolution: Folder of that resolution in ``JPEGImages`` and ``Annotations``.
        subset: File that lists the sequences.
        sequences: Official number of sequences.
        frames: Official number of frames.
        objects: Official number of objects.
    """

    name: str = "davis-2017-val"
    folder: str = "DAVIS"
    resolution: str = "480p"
    subset: str = "ImageSets/2017/val.txt"
    sequences: int = 30
    frames: int = 1999
    objects: int = 61

    @property
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""
        return (
            f"{self.folder}/{self.subset}, {self.folder}/JPEGImages/{self.resolution}/<sequence>/*.jpg "
            f"and {self.folder}/Annotations/{self.resolution}/<sequence>/*.png"
        )

    def read(self, data: Path) -> Videos:
        """The sequences of a DAVIS subset that are there, by sorted name; keys are ``<sequence>/<frame>``."""
        root = self.root(data)
        frames, masks = root / "JPEGImages" / self.resolution, root / "Annotations" / self.resolution
        require_directory(frames, f"the frames of {self.name}")
        require_directory(masks, f"the masks of {self.name}")
        listed = _sequences(root / self.subset)
        there = [name for name in listed if is_folder(frames / name)]
        if not there:
            raise InputError(
                f"expected folders of the sequences {some(listed)} in {frames}, found none of them"
            )
        videos = tuple(_read_video(name, frames / name, masks / name) for name in there)
        counts = (
            Count("sequences", len(videos), self.sequences),
            Count("frames", sum(len(video.frames) for video in videos), self.frames),
            Count("objects", sum(_objects(video) for video in videos), self.objects),
        )
        return Videos(self.name, videos, Coverage(counts))

    def contents(self, data: Path) -> Iterable[Part]:
        """The list, frames and masks of the sequences that are there."""
        paths = [data / self.folder / self.subset]
        for video in self.read(data).videos:
            paths += [Path(frame.path) for frame in video.frames]
            paths += video.masks
        yield Part("files", paths)


DAVIS_2017_VAL = DavisEntry()


def _sequences(path: Path) -> list[str]:
    """Sorted names in a subset's file; raises InputError."""
    try:
        lines = read_bytes(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"expected a list of sequences at {path}: {error}") from error
    names = [line.strip() for line in lines if line.strip()]
    if not names or len(set(names)) != len(names):
        raise InputError(f"expected one sequence a line in {path}, each once, found {some(names) or 'none'}")
    return sorted(require_inside(name, str(path)) for name in names)


def _objects(video: Video) -> int:
    """Number of objects in the first mask; raises InputError where there is none."""
    number = object_count(read_mask(video.masks[0]))
    if not number:
        raise InputError(
            f"expected at least one object in the first mask {video.masks[0]}, found background only"
        )
    return number


def _read_video(name: str, frames: Path, masks: Path) -> Video:
    """The frames and masks of one sequence; raises InputError."""
    images = file_names(frames, (".jpg",))
    if not images:
        raise InputError(f"expected frames (*.jpg) in {frames}, found none")
    if not is_folder(masks):
        raise InputError(f"expected a folder of masks at {masks} for the frames in {frames}, found none")
    stems = [Path(image).stem for image in images]
    _require_same_frames(stems, [Path(mask).stem for mask in file_names(masks, (".png",))], frames, masks)
    size = image_size(frames / images[0])
    paths = tuple(masks / f"{stem}.png" for stem in stems)
    for frame, mask in zip(images, paths, strict=True):
        _require_same_size(frames / frame, mask, size)
    samples = tuple(
        FileSample(f"{name}/{stem}", str(frames / image)) for stem, image in zip(stems, images, strict=True)
    )
    return Video(name, samples, paths, size)


def _require_same_frames(frames: list[str], masks: list[str], frames_at: Path, masks_at: Path) -> None:
    bare = sorted(set(frames) - set(masks))
    if bare:
        raise InputError(
            f"expected a mask for every frame of {frames_at} in {masks_at}, found none for {some(bare)}; "
            "fetch the missing files"
        )
    alone = sorted(set(masks) - set(frames))
    if alone:
        raise InputError(
            f"expected a frame for every mask of {masks_at} in {frames_at}, found none for {some(alone)}; "
            "fetch the missing files"
        )


def _require_same_size(frame: Path, mask: Path, size: tuple[int, int]) -> None:
    for path in (frame, mask):
        found = image_size(path)
        if found != size:
            raise InputError(
                f"expected frames and masks of one size in a sequence, {size[0]} x {size[1]} as its first "
                f"frame, found {found[0]} x {found[1]} in {path}"
            )


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
