"""DAVIS-2017: frames in ``JPEGImages/480p/<sequence>``, masks in ``Annotations/480p/<sequence>``."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from layerboard.tasks.datasets.base import Count, Coverage, Data, DatasetEntry, FileSample, Needed
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.metrics.arrays import VOID
from layerboard.zoo.errors import counted, some


@dataclass(frozen=True, slots=True)
class Video:
    """Frames of one sequence and their annotation masks (palette PNG, pixel value = object id), by frame."""

    name: str
    frames: tuple[FileSample, ...]
    masks: tuple[Path, ...]
    size: tuple[int, int]  # width and height, equal for frames and masks


@dataclass(frozen=True, slots=True)
class Videos(Data):
    """A DAVIS-2017 split."""

    name: str
    videos: tuple[Video, ...]
    coverage: Coverage
    firsts = ("videos",)
    items = "videos"

    @property
    def truth(self) -> tuple[object, ...]:
        return (storage.names_and_sizes(path for video in self.videos for path in video.masks),)


@dataclass(frozen=True, slots=True)
class DavisEntry(DatasetEntry[Videos]):
    """A dataset in the layout of DAVIS-2017: folders, the list of sequences, and official counts."""

    roles = ("videos",)
    form = (
        "{0.folder}/{0.subset}, {0.folder}/JPEGImages/{0.resolution}/<sequence>/*.jpg "
        "and {0.folder}/Annotations/{0.resolution}/<sequence>/*.png"
    )
    needed = (
        Needed("JPEGImages/{0.resolution}/", "the frames"),
        Needed("Annotations/{0.resolution}/", "the masks"),
    )

    name: str = "davis-2017-val"
    folder: str = "DAVIS"
    resolution: str = "480p"
    subset: str = "ImageSets/2017/val.txt"
    sequences: int = 30
    frames: int = 1999
    objects: int = 61

    def read(self, data: Path) -> Videos:
        """The existing sequences of a DAVIS subset, sorted by name; keys are ``<sequence>/<frame>``."""
        root = self.root(data)
        frames, masks = root / "JPEGImages" / self.resolution, root / "Annotations" / self.resolution
        listed = storage.read_names(root / self.subset, "sequence")
        there = [name for name in listed if storage.is_folder(frames / name)]
        require(there, f"folders of the sequences {some(listed)} in {frames}", "none of them")
        videos = tuple(_read_video(name, frames / name, masks / name) for name in there)
        counts = (
            Count("sequences", len(videos), self.sequences),
            Count("frames", sum(len(video.frames) for video in videos), self.frames),
            Count("objects", sum(_objects(video) for video in videos), self.objects),
        )
        # the first and the last frame of a sequence do not count
        short = [video.name for video in videos if len(video.frames) < 3]
        said = f"{counted(len(short), 'sequences')} of fewer than 3 frames not scored ({some(short, 2)})"
        return Videos(self.name, videos, Coverage(counts, remarks=(said,) if short else ()))


DAVIS_2017_VAL = DavisEntry()


def _objects(video: Video) -> int:
    """Number of objects by the official rule: the highest id in the first mask, without void."""
    mask = read_mask(video.masks[0])
    number = int(np.max(mask, where=mask != VOID, initial=0))
    require(number, f"at least one object in the first mask {video.masks[0]}", "background only")
    return number


def _read_video(name: str, frames: Path, masks: Path) -> Video:
    """Frames and masks of one sequence; raises InputError if one is missing or sizes differ."""
    images = {path.stem: path for path in storage.file_paths(frames, ".jpg")}
    require(images, f"frames (*.jpg) in {frames}")
    require(storage.is_folder(masks), f"a folder of masks at {masks} for the frames in {frames}")
    annotated = {path.stem for path in storage.file_paths(masks, ".png")}
    missing = [f"{masks}/{stem}.png" for stem in {*images} - annotated]
    missing += [f"{frames}/{stem}.jpg" for stem in annotated - {*images}]
    paired = f"a mask for every frame, and a frame for every mask, of sequence {name}"
    require(not missing, paired, f"none at {some(sorted(missing))}", "fetch the missing files")
    paths = tuple(masks / f"{stem}.png" for stem in images)
    pairs = list(zip(images.values(), paths, strict=True))
    size = storage.image_size(pairs[0][0])
    for path in (path for pair in pairs for path in pair):
        storage.require_size(path, size, f"the first frame of {name}", "fetch the sequence again")
    samples = (FileSample(f"{name}/{stem}", str(path)) for stem, path in images.items())
    return Video(name, tuple(samples), paths, size)
