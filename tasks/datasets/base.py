"""What an official dataset is, what is read of one, and how complete that is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

from PIL import Image

from layerboard.tasks.datasets.files import open_image, require_directory, stamp
from layerboard.zoo.errors import UnreadableImageError, counted
from layerboard.zoo.view.geometry import Box
from layerboard.zoo.view.photos import as_seen, decoding


@runtime_checkable
class Sample(Protocol):
    """One image and how to get it."""

    @property
    def key(self) -> str:
        """A name that is unique within the dataset and the same on every machine."""

    @property
    def box(self) -> Box | None:
        """The part of the image to show, in pixel edges; None for all of it."""

    def open(self) -> Image.Image:
        """The decoded RGB image; raises UnreadableImageError."""

    def signature(self) -> str:
        """A value that changes when the image's bytes do, found without reading them."""


def to_rgb(image: Image.Image) -> Image.Image:
    """The decoded image in RGB, as code of official datasets has it: not turned, no transparency blended."""
    if image.mode == "P" and isinstance(image.info.get("transparency"), bytes):
        image = image.convert("RGBA")  # the same colours, without Pillow's warning that alpha is lost
    image.load()
    return image if image.mode == "RGB" else image.convert("RGB")  # converting would copy it


@dataclass(frozen=True, slots=True)
class FileSample:
    """An image that is a file, of a folder or of a pack (`tasks.datasets.files`)."""

    key: str
    path: str
    box: Box | None = None

    def open(self) -> Image.Image:
        with decoding(f"cannot decode image {self.path}"), open_image(self.path) as image:
            return self._rgb(image)

    _rgb = staticmethod(to_rgb)

    @property
    def stamp(self) -> tuple[int, int | str]:
        """Bytes and what tells of a change (`tasks.datasets.files.stamp`); raises UnreadableImageError."""
        try:
            return stamp(self.path)
        except OSError as error:
            raise UnreadableImageError(f"cannot find image {self.path}: {error.strerror}") from error

    def signature(self) -> str:
        size, changed = self.stamp
        return f"{self.key}|{size}|{changed}|{self.box}"


class PhotoSample(FileSample):
    """An image of the user's own, which is read as people see it (`zoo.view.photos.as_seen`)."""

    __slots__ = ()
    _rgb = staticmethod(as_seen)

    def signature(self) -> str:
        return f"{FileSample.signature(self)}|as seen"


@runtime_checkable
class MadeSample(Sample, Protocol):
    """An image that is made of another one each time it is opened."""

    @property
    def sample(self) -> Sample:
        """The image that it is made of."""

    @property
    def made(self) -> str:
        """What tells it from others that are made of the same image."""


@dataclass(frozen=True, slots=True)
class Count:
    """How many of something a dataset on disk has, and how many the official one has (None: any number)."""

    what: str
    present: int
    expected: int | None = None

    def __str__(self) -> str:
        if self.expected is None:
            return counted(self.present, self.what)
        return f"{self.present:,} of {self.expected:,} {self.what}"


@dataclass(frozen=True, slots=True)
class LevelCounts:
    """The `Count` of each level."""

    what: str
    present: tuple[int, ...]
    expected: tuple[int, ...]

    def __str__(self) -> str:
        both = ("/".join(f"{number:,}" for number in each) for each in (self.present, self.expected))
        return f"{self.what} {' of '.join(both)}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is there of a dataset, beside what should be."""

    counts: tuple[Count | LevelCounts, ...]
    notes: tuple[str, ...] = ()  # what readers of the numbers must know; each makes it partial
    remarks: tuple[str, ...] = ()  # how it was understood, such as a split that was made of it

    @property
    def partial(self) -> bool:
        """Whether anything differs from the official dataset."""
        return bool(self.notes) or any(each.expected not in (None, each.present) for each in self.counts)

    def noted(self, note: str) -> "Coverage":
        return replace(self, notes=(*self.notes, note))

    def __str__(self) -> str:
        return "; ".join([", ".join(str(count) for count in self.counts), *self.remarks, *self.notes])


class Data:
    """What was read of a dataset: each task is on data of one kind."""

    __slots__ = ()

    name: str
    coverage: Coverage
    role: ClassVar[str] = ""  # what tasks see in it where it is the user's own (`tasks.registry.Role`)
    firsts: ClassVar[tuple[str, ...]]  # fields of which a smaller version has the first items
    items: ClassVar[str] = "images"  # what these are called

    def named(self, name: str) -> Self:
        """The data by another name."""
        return replace(self, name=name)  # type: ignore[type-var]  # each is a dataclass

    def serving(self, role: str) -> "Data | None":
        """What tasks of a role that were named look at, where it is the user's own; None for nothing."""
        return self if role == self.role else None

    def limited(self, limit: int | None) -> Self:
        """A smaller version for trying things out, whose coverage says so; itself where it has no more."""
        if limit is None or all(len(getattr(self, name)) <= limit for name in self.firsts):
            return self
        fewer = {name: getattr(self, name)[:limit] for name in self.firsts}
        coverage = self.coverage.noted(f"limited to {counted(limit, self.items)}")
        return replace(self, **fewer, coverage=coverage)  # type: ignore[type-var]  # each is a dataclass

    @property
    def truth(self) -> tuple[object, ...] | None:
        """What tells its ground truth from another wherever it lies; None where its tasks say so in full."""
        return None

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        """What tells it from others of its name: its ground truth, and what is stated of each image."""
        return [self.truth, [stated(sample) for sample in images_of(self)]]

    def described(self) -> Iterator[tuple[str, str, str, str]]:
        """The name, class, group and split of each image; "" for those that it has not."""
        yield from ((sample.key, "", "", "") for sample in images_of(self))


def images_of(data: object) -> Iterator[Sample]:
    """The images of what was read, in order, wherever a dataset holds them."""
    if isinstance(data, Sample):
        yield data
    elif isinstance(data, tuple):
        for each in data:
            yield from images_of(each)
    elif is_dataclass(data):
        for field in fields(data):
            yield from images_of(getattr(data, field.name))


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
        """What is there in a folder of datasets, or root of a pack, in an order that is the same everywhere.

        Raises MissingDataError where it is not there, InputError for a wrong layout or file, or no image.
        """

    @abstractmethod
    def contents(self, data: Path) -> dict[str, list[Path]]:
        """The files of a folder, no pack, that `read` looks at, as far as they are there.

        By split, or ``files``; in any order and several times even.
        """

    def root(self, data: Path) -> Path:
        """The dataset's folder in a data folder; raises MissingDataError without it."""
        require_directory(data / self.folder, f"{self.name} ({self.layout})")
        return data / self.folder
