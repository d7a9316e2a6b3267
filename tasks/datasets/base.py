"""What an official dataset is, what is read of one, and how complete that is."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

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

    def noted(self, note: str) -> "Coverage":
        """The same with one more note."""
        return replace(self, notes=(*self.notes, note))

    def limited(self, limit: int, noun: str, plural: str = "", rest: str = "") -> "Coverage":
        """The same of a smaller version of the dataset, of so many items."""
        return self.noted(f"limited to {counted(limit, noun, plural)}{rest}")

    def __str__(self) -> str:
        return "; ".join([", ".join(str(count) for count in self.counts), *self.remarks, *self.notes])


def counted(count: int, noun: str, plural: str = "") -> str:
    """A count with its noun."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


class Data(ABC):
    """What was read of a dataset: each task is on data of one kind."""

    __slots__ = ()

    name: str
    coverage: Coverage

    @abstractmethod
    def limited(self, limit: int | None) -> Self:
        """A smaller version for trying things out, whose coverage says so; itself where it has no more."""

    @property
    def truth(self) -> tuple[object, ...] | None:
        """What tells its ground truth from another wherever it lies; None where its tasks say so in full."""
        return None


@dataclass(frozen=True, slots=True)
class Part:
    """Files of a dataset that are packed together.

    Attributes:
        name: Split, or ``files``.
        paths: Their paths, in any order and several times even.
        classes: Names of the classes of images that have some, which are those of their folders.
    """

    name: str
    paths: Iterable[Path]
    classes: tuple[str, ...] = ()


D = TypeVar("D", bound=Data, covariant=True)


class DatasetEntry(ABC, Generic[D]):
    """An official dataset: where its files are, how many of everything there are, and how they are read."""

    __slots__ = ()

    name: str
    folder: str

    @property
    @abstractmethod
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""

    @abstractmethod
    def read(self, data: Path) -> D:
        """What is there of the dataset, in an order that is the same on every machine.

        Args:
            data: Folder that holds the dataset's folder, or root of a pack.

        Raises:
            MissingDataError: It is not there.
            InputError: A wrong layout, a malformed file, or no image.
        """

    @abstractmethod
    def contents(self, data: Path) -> Iterable[Part]:
        """The files of a folder, no pack, that `read` looks at, as far as they are there."""

    def root(self, data: Path) -> Path:
        """The dataset's folder in a data folder; raises MissingDataError without it."""
        require_directory(data / self.folder, f"{self.name} ({self.layout})")
        return data / self.folder


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

    def limited(self, limit: int) -> "ClassImages":
        """The first images of each class."""
        rank = np.zeros(len(self.labels), np.int64)
        for label in np.unique(self.labels):
            (positions,) = np.nonzero(self.labels == label)
            rank[positions] = np.arange(len(positions))
        (first,) = np.nonzero(rank < limit)
        return ClassImages(tuple(self.samples[index] for index in first), self.labels[first], self.classes)


@dataclass(frozen=True, slots=True)
class Classification(Data):
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

    def limited(self, limit: int | None) -> Self:
        """The first images of each class in each split."""
        if limit is None:
            return self
        train, val = self.train.limited(limit), self.val.limited(limit)
        if (len(train.samples), len(val.samples)) == (len(self.train.samples), len(self.val.samples)):
            return self
        used = f" a class: {len(train.samples):,} train and {len(val.samples):,} val images were used"
        return replace(self, train=train, val=val, coverage=self.coverage.limited(limit, "image", rest=used))


@dataclass(frozen=True, slots=True)
class Unlabelled(Data):
    """Images without classes, in sorted key order."""

    name: str
    samples: tuple[Sample, ...]
    coverage: Coverage

    def limited(self, limit: int | None) -> Self:
        """The first images."""
        if limit is None or limit >= len(self.samples):
            return self
        return replace(self, samples=self.samples[:limit], coverage=self.coverage.limited(limit, "image"))


@dataclass(frozen=True, slots=True)
class Retrieval(Data):
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

    def limited(self, limit: int | None) -> Self:
        """The first queries; the database stays whole, since it decides the ranking."""
        if limit is None or limit >= len(self.queries):
            return self
        return replace(
            self,
            queries=self.queries[:limit],
            easy=self.easy[:limit],
            hard=self.hard[:limit],
            junk=self.junk[:limit],
            coverage=self.coverage.limited(limit, "query", "queries"),
        )


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
        return (_names_and_sizes(path for video in self.videos for path in video.masks),)


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
class Keypoints(Data):
    """A SPair-71k split: each image once, and pairs that point to them."""

    name: str
    samples: tuple[Sample, ...]
    pairs: tuple[KeypointPair, ...]
    coverage: Coverage

    def limited(self, limit: int | None) -> Self:
        """The first pairs of each category."""
        if limit is None:
            return self
        seen = Counter[str]()
        first = []
        for pair in self.pairs:
            seen[pair.category] += 1
            if seen[pair.category] <= limit:
                first.append(pair)
        if len(first) == len(self.pairs):
            return self
        used = f" a category: {counted(len(first), 'pair')} used"
        return replace(self, pairs=tuple(first), coverage=self.coverage.limited(limit, "pair", rest=used))


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
class Regions(Data):
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

    def limited(self, limit: int | None) -> Self:
        """The first images."""
        if limit is None or limit >= len(self.images):
            return self
        return replace(self, images=self.images[:limit], coverage=self.coverage.limited(limit, "image"))


@dataclass(frozen=True, slots=True)
class Scene:
    """An image and the file that says the class of each of its pixels; size is (width, height) of both."""

    sample: Sample
    size: tuple[int, int]
    mask: Path


@dataclass(frozen=True, slots=True)
class Scenes(Data):
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

    def limited(self, limit: int | None) -> Self:
        """The first images of each split."""
        if limit is None or limit >= max(len(self.train), len(self.val)):
            return self
        coverage = self.coverage.limited(limit, "image", rest=" of each split")
        return replace(self, train=self.train[:limit], val=self.val[:limit], coverage=coverage)

    @property
    def truth(self) -> tuple[object, ...]:
        """Names and sizes of the masks, and what their values mean."""
        masks = (scene.mask for scene in (*self.train, *self.val))
        return _names_and_sizes(masks), self.classes, self.offset, self.memory


def _names_and_sizes(paths: Iterable[Path]) -> list[tuple[str, int]]:
    return [(path.name, stamp(path)[0]) for path in paths]


def require_directory(path: Path, what: str) -> None:
    """Raise MissingDataError unless a directory exists."""
    if not is_folder(path):
        state = "is not a directory" if exists(path) else "does not exist"
        raise MissingDataError(f"expected {what} at {path}, which {state}")
