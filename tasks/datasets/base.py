"""Samples, what a dataset holds, and how complete it is."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from tasks.datasets.storage import exists, is_folder, open_image, stamp
from zoo.errors import InputError, MissingDataError
from zoo.view.geometry import Box


class UnreadableImageError(InputError):
    """An image file that is missing, truncated or no image."""


class Sample(Protocol):
    """One image and how to get it.

    Attributes:
        key: Name that is unique within its dataset and stable across machines.
        box: Part of the image to show, in pixel edges; None for all of it.
    """

    @property
    def key(self) -> str:
        """A name that no other has and that stays the same from run to run."""
        ...

    @property
    def box(self) -> Box | None:
        """The part of the image to show; None for all of it."""
        ...

    def open(self) -> Image.Image:
        """The decoded RGB image; raises UnreadableImageError."""
        ...

    def signature(self) -> str:
        """A value that changes when the image's bytes do, found without reading them."""
        ...


def to_rgb(image: Image.Image) -> Image.Image:
    """The decoded image in RGB; transparency is dropped, not blended."""
    if image.mode == "P" and isinstance(image.info.get("transparency"), bytes):
        # The same colours, without Pillow's warning that alpha is lost.
        image = image.convert("RGBA")
    if image.mode == "RGB":  # converting would copy it
        image.load()
        return image
    return image.convert("RGB")


@dataclass(frozen=True, slots=True)
class FileSample:
    """An image that is a file, of a folder or of a pack (`tasks.datasets.storage`)."""

    key: str
    path: str
    box: Box | None = None

    def open(self) -> Image.Image:
        """The decoded RGB image; raises UnreadableImageError for a missing, truncated or foreign file."""
        try:
            with open_image(self.path) as image:
                return to_rgb(image)
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise UnreadableImageError(f"cannot decode image {self.path}: {error}") from error

    def signature(self) -> str:
        """Size and modification time of the file; of one in a pack, size and digest."""
        try:
            size, changed = stamp(self.path)
        except OSError as error:
            raise UnreadableImageError(f"cannot find image {self.path}: {error.strerror}") from error
        return f"{self.key}|{size}|{changed}|{self.box}"


@dataclass(frozen=True, slots=True)
class Count:
    """How many of something a dataset on disk has, and how many the official one has (None: any number)."""

    what: str
    found: int
    expected: int | None = None

    @property
    def complete(self) -> bool:
        """Whether as many are there as the official dataset has."""
        return self.expected is None or self.found == self.expected

    def __str__(self) -> str:
        of = "" if self.expected is None else f" of {self.expected:,}"
        return f"{self.found:,}{of} {self.what}"


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """How many of something are of each level in a dataset on disk, and in the official one."""

    what: str
    found: tuple[int, ...]
    expected: tuple[int, ...]

    @property
    def complete(self) -> bool:
        """Whether of each level as many are there as the official dataset has."""
        return self.found == self.expected

    def __str__(self) -> str:
        found, expected = ("/".join(f"{number:,}" for number in each) for each in (self.found, self.expected))
        return f"{self.what} {found} of {expected}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is there of a dataset, beside what should be.

    Attributes:
        counts: One entry for each thing that is counted.
        notes: What a reader of the numbers must know, such as a replaced class list; each makes it partial.
        remarks: How it was understood, such as a split that was made of it; that makes nothing partial.
    """

    counts: tuple[Count | LevelCounts, ...]
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def partial(self) -> bool:
        """Whether anything differs from the official dataset."""
        return bool(self.notes) or not all(count.complete for count in self.counts)

    def __str__(self) -> str:
        return "; ".join([", ".join(str(count) for count in self.counts), *self.remarks, *self.notes])


@dataclass(frozen=True, slots=True)
class ClassImages:
    """Images with class labels, in sorted key order.

    Attributes:
        samples: The images.
        labels: Class index of each, int64 [images].
        classes: Class names; an index is the rank of the name in sorted order.
    """

    samples: tuple[Sample, ...]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Classification:
    """A classification dataset: a bank (train) and queries (val) over the same classes.

    Attributes:
        name: Name of the dataset.
        train: The bank.
        val: The queries.
        coverage: How complete it is.
        split: What was read of it, for records; it says where ``val`` was made of ``train``.
    """

    name: str
    train: ClassImages
    val: ClassImages
    coverage: Coverage
    split: str = "train, val"


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Images without classes, in sorted key order."""

    name: str
    samples: tuple[Sample, ...]
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A revisited retrieval dataset.

    Attributes:
        database: Images that are ranked, in ground-truth order.
        queries: Query images, each with its box.
        easy: For each query, indices of its easy positives in the database, int64.
        hard: The same for hard positives.
        junk: The same for images that are ignored.
    """

    name: str
    database: tuple[FileSample, ...]
    queries: tuple[FileSample, ...]
    easy: tuple[NDArray[np.int64], ...]
    hard: tuple[NDArray[np.int64], ...]
    junk: tuple[NDArray[np.int64], ...]
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class Video:
    """Frames of one sequence and their annotation masks (palette PNG, pixel value = object id), by frame."""

    name: str
    frames: tuple[Sample, ...]
    masks: tuple[Path, ...]
    size: tuple[int, int]
    """Width and height of frames and masks, which agree."""


@dataclass(frozen=True, slots=True)
class Videos:
    """A DAVIS-2017 split."""

    name: str
    videos: tuple[Video, ...]
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class PairFacts:
    """How hard a pair is, as its annotation says.

    Attributes:
        viewpoint: How far the viewpoints differ: 0 easy, 1 medium, 2 hard.
        scale: How far the sizes of the objects differ: the same levels.
        truncation: Which object is cut off: 0 none, 1 the source's, 2 the target's, 3 both.
        occlusion: Which object is covered: the same levels.
        mistakable: For each keypoint, whether the target image shows another one that stands for the same,
            such as the other eye; None where it is not known which keypoints it shows.
    """

    viewpoint: int
    scale: int
    truncation: int
    occlusion: int
    mistakable: tuple[bool, ...] | None


@dataclass(frozen=True, slots=True)
class KeypointPair:
    """Two images of one category with corresponding keypoints.

    Attributes:
        key: Name of the pair.
        category: Its category.
        source: Index of the source image in ``Keypoints.samples``.
        target: Index of the target image.
        source_size: Width and height of the source image in pixels.
        target_size: The same of the target image.
        source_box: Bounding box of the object in the source image, in pixels.
        target_box: The same in the target image.
        source_points: Keypoints (x, y) visible in both images, float64 [points 2].
        target_points: The same points in the target image, in the same order.
        facts: How hard it is; None where its annotation does not say so.
        turn: Eighths of a turn between the viewpoints of the two images, 0 to 4; None if not known.
    """

    key: str
    category: str
    source: int
    target: int
    source_size: tuple[int, int]
    target_size: tuple[int, int]
    source_box: Box
    target_box: Box
    source_points: NDArray[np.float64]
    target_points: NDArray[np.float64]
    facts: PairFacts | None = None
    turn: int | None = None


@dataclass(frozen=True, slots=True)
class Keypoints:
    """A SPair-71k split: each image once, and pairs that point to them."""

    name: str
    samples: tuple[Sample, ...]
    pairs: tuple[KeypointPair, ...]
    coverage: Coverage


class Region(Protocol):
    """An annotated object or part in an image."""

    @property
    def key(self) -> str:
        """A name that no other has and that stays the same from run to run."""
        ...

    @property
    def label(self) -> int:
        """Number of the region's category."""
        ...

    def mask(self) -> NDArray[np.uint8]:
        """Binary mask at image size, values 0 and 1, [height width]."""
        ...


@dataclass(frozen=True, slots=True)
class RegionImage:
    """An image with its annotated regions, which are never empty; size is (width, height)."""

    sample: Sample
    size: tuple[int, int]
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Regions:
    """Images with object or part masks.

    Attributes:
        name: Name of the dataset.
        images: The images.
        categories: Names by the ids of categories.
        coverage: How complete they are.
        edition: What tells them from others of the dataset that are shown alike: the images that a protocol
            takes, or their order; "" for the usual ones.
    """

    name: str
    images: tuple[RegionImage, ...]
    categories: dict[int, str] = field(hash=False)
    coverage: Coverage
    edition: str = ""


@dataclass(frozen=True, slots=True)
class Scene:
    """An image and the file that says the class of each of its pixels; size is (width, height) of both."""

    sample: Sample
    size: tuple[int, int]
    mask: Path


@dataclass(frozen=True, slots=True)
class Scenes:
    """A semantic segmentation dataset: images to remember (train) and images to label (val), by sorted key.

    Attributes:
        name: Name of the dataset.
        train: Images whose labels are known.
        val: Images that are labelled.
        classes: Names of the classes, from 0.
        offset: Pixel value of class 0; lower values are no class, as 255 is.
        memory: How many cells of the training images are remembered at most.
        coverage: How complete it is.
        most: The same by protocols with a number of their own; None for theirs.
    """

    name: str
    train: tuple[Scene, ...]
    val: tuple[Scene, ...]
    classes: tuple[str, ...]
    offset: int
    memory: int
    coverage: Coverage
    most: int | None = None


def require_directory(path: Path, what: str) -> None:
    """Raise MissingDataError unless a directory exists."""
    if not is_folder(path):
        state = "is not a directory" if exists(path) else "does not exist"
        raise MissingDataError(f"expected {what} at {path}, which {state}")
