"""DAVIS-2017: frames in ``JPEGImages/480p/<sequence>``, masks in ``Annotations/480p/<sequence>``."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import (
    Count,
    Coverage,
    DatasetEntry,
    FileSample,
    Part,
    Video,
    Videos,
    require_directory,
)
from tasks.datasets.davis_masks import object_count, read_mask
from tasks.datasets.files import file_names, image_size, require_inside, some
from tasks.datasets.storage import is_folder, read_bytes
from zoo.errors import InputError


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
