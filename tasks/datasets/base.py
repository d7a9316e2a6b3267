"""Base classes of datasets: samples, data that were read, coverage, and entries of official datasets."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from PIL import Image

from layerboard.tasks.datasets.integrity import Count as Count
from layerboard.tasks.datasets.integrity import Coverage as Coverage
from layerboard.tasks.datasets.reading.files import open_image, require_directory, require_there, stamp
from layerboard.zoo.errors import UnreadableImageError, counted
from layerboard.zoo.view.geometry import Box
from layerboard.zoo.view.photos import DEEPEST, as_seen, decoding

T = TypeVar("T")


@runtime_checkable
class Sample(Protocol):
    """One image, opened on demand."""

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


@dataclass(frozen=True, slots=True)
class FileSample:
    """An image that is a file, of a folder or of a pack (`tasks.datasets.reading.files`)."""

    key: str
    path: str
    box: Box | None = None

    def open(self) -> Image.Image:
        with decoding(f"cannot decode image {self.path}"), open_image(self.path) as image:
            return self._rgb(image)

    def _rgb(self, image: Image.Image) -> Image.Image:
        """The decoded image, as in code of official datasets: not rotated, transparency not blended."""
        if image.mode == "P" and isinstance(image.info.get("transparency"), bytes):
            image = image.convert("RGBA")  # the same colours, without Pillow's warning about lost alpha
        image.load()
        return image if image.mode == "RGB" else image.convert("RGB")  # conversion would copy it

    @property
    def stamp(self) -> tuple[int, int | str]:
        """Size in bytes and a change marker (`reading.files.stamp`); raises UnreadableImageError."""
        try:
            return stamp(self.path)
        except OSError as error:
            raise UnreadableImageError(f"cannot find image {self.path}: {error.strerror}") from error

    def signature(self) -> str:
        size, changed = self.stamp
        return f"{self.key}|{size}|{changed}|{self.box}"


@dataclass(frozen=True, slots=True)
class PhotoSample(FileSample):
    """One of the user's own images, read as people see it (`zoo.view.photos.as_seen`)."""

    bits: int = DEEPEST  # of the range of values of more than 8 bits, the same in the whole dataset
    pixels: str = ""  # digest of what is seen (`tasks.datasets.facts`)

    def _rgb(self, image: Image.Image) -> Image.Image:
        return as_seen(image, self.bits)

    @property
    def read_as(self) -> str:
        """How the pixels are read, if another way gives other ones from the same file, else ""."""
        return range_text(self.bits)

    def signature(self) -> str:
        return f"{FileSample.signature(self)}{self.read_as}|as seen{self.pixels and f'|{self.pixels}'}"


def range_text(bits: int) -> str:
    """The range of pixels as a part of the identity of an image; "" for the usual one."""
    return "" if bits == DEEPEST else f"|{bits} bits"


@runtime_checkable
class MadeSample(Sample, Protocol):
    """An image that is generated from another one each time it is opened."""

    @property
    def sample(self) -> Sample:
        """The original image."""

    @property
    def made(self) -> str:
        """Identity among the images generated from the same original."""


class Data:
    """Data read from a dataset; each task takes data of one kind."""

    __slots__ = ()

    name: str
    coverage: Coverage
    role: ClassVar[str] = ""  # role of the user's own data for tasks (`tasks.registry.OWN_ROLES`)
    firsts: ClassVar[tuple[str, ...]]  # fields that a limited version cuts to their first items
    items: ClassVar[str] = "images"  # name of these items

    def named(self, name: str) -> Self:
        """The data under another name."""
        return replace(self, name=name)  # type: ignore[type-var]  # each is a dataclass

    def serving(self, role: str) -> "Data | None":
        """The user's own data in the form for tasks of a role that were named; None if there is none."""
        return self if role == self.role else None

    def limited(self, limit: int) -> Self:
        """A smaller version for quick trials, with a note in its coverage; itself if it is not larger."""
        if all(len(getattr(self, name)) <= limit for name in self.firsts):
            return self
        fewer = {name: getattr(self, name)[:limit] for name in self.firsts}
        coverage = self.coverage.noted(f"limited to {counted(limit, self.items)}")
        return replace(self, **fewer, coverage=coverage)  # type: ignore[type-var]  # each is a dataclass

    @property
    def truth(self) -> tuple[object, ...] | None:
        """Identity of its ground truth, independent of its location; None if the tasks state it in full."""
        return None

    def content(self, stated: Callable[[Sample], str]) -> list[object]:
        """Identity among data of the same name: the ground truth, and ``stated`` for each image."""
        return [self.truth, [stated(sample) for sample in images_of(self)]]

    def held_apart(self) -> Iterator[tuple[str, Iterable[Sample], str, Iterable[Sample]]]:
        """Pairs of parts that should share no image: name and images of the known one, and of the other."""
        yield from ()

    def described(self) -> Iterator[tuple[str, str, str, str]]:
        """Name, class, group and split of each image; "" for those that do not exist."""
        yield from ((sample.key, "", "", "") for sample in images_of(self))


def images_of(data: object) -> Iterator[Sample]:
    """All images of data, in order, from any field."""
    if isinstance(data, Sample):
        yield data
    elif isinstance(data, tuple):
        for each in data:
            yield from images_of(each)
    elif is_dataclass(data):
        for field in fields(data):
            yield from images_of(getattr(data, field.name))


def first_of_each(items: Iterable[T], most: int, key: Callable[[T], object]) -> tuple[T, ...]:
    """Up to ``most`` items of each key, the first ones, in order."""
    seen = defaultdict[object, Iterator[int]](count)
    return tuple(item for item in items if next(seen[key(item)]) < most)


D = TypeVar("D", bound=Data, covariant=True)
E = TypeVar("E", bound="DatasetEntry[Any]")


def with_samples(data: Any, new: Mapping[Sample, Sample]) -> Any:  # noqa: ANN401  # any field of data
    """The data with other images in place of some."""
    if isinstance(data, Sample):
        return new.get(data, data)
    if isinstance(data, tuple):
        items = (with_samples(each, new) for each in data)
        return data._make(items) if hasattr(data, "_make") else tuple(items)
    if is_dataclass(data) and not isinstance(data, type):
        changed = {each.name: with_samples(getattr(data, each.name), new) for each in fields(data)}
        return replace(data, **changed)
    return data


class Needed(NamedTuple):
    """A folder or a file without which nothing of a dataset can be read."""

    path: str  # below the dataset's folder, with the entry's fields in braces; that of a folder ends with /
    what: str  # it is, for people


class DatasetEntry(ABC, Generic[D]):
    """An official dataset: the location of its files, official counts, and their reader."""

    __slots__ = ()

    form: ClassVar[str]  # description of the files below the data folder, with its fields
    needed: ClassVar[tuple[Needed, ...]] = ()  # what must be there
    roles: tuple[str, ...]  # tasks of these roles are run on it (`tasks.registry.TaskEntry.role`)
    name: str
    folder: str
    class_names: tuple[tuple[str, str], ...] = ()  # names for people of classes with other names, by these
    group: str = ""  # of similar datasets, over which there are means, too; "" for none
    source: str = ""  # where its files come from, if its layout does not say so
    revision: str = ""  # pinned commit of the source; "" if none is known

    @property
    def layout(self) -> str:
        """Description of the files that are expected below the data folder."""
        return self.form.format(self)

    @abstractmethod
    def read(self, data: Path) -> D:
        """Read the dataset from a folder of datasets or the root of a pack, in the same order everywhere.

        Raises MissingDataError if it is missing, InputError for a wrong layout or file, or no image.
        """

    def root(self, data: Path) -> Path:
        """The dataset's folder in a data folder; raises MissingDataError if it lacks, or what is `needed`."""
        root = data / self.folder
        require_directory(root, f"{self.name} ({self.layout})")
        for path, what in self.needed:
            require_there(root / path.format(self), f"{what} of {self.name}", folder=path.endswith("/"))
        return root


def with_choices(entry: E, choices: object) -> E:
    """An entry with those fields of a protocol's choices that it has, too, such as ``left_out``."""
    names = {each.name for each in fields(choices)} & {each.name for each in fields(entry)}  # type: ignore[arg-type]
    changed = {name: getattr(choices, name) for name in names}
    return replace(entry, **changed)  # type: ignore[type-var]  # each is a dataclass
