"""PartImageNet, original release: ``{train,val,test}.json`` and ``{train,val,test}/<wnid>/<file>``."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from layerboard.tasks.datasets.base import Count, Coverage, DatasetEntry
from layerboard.tasks.datasets.coco import CocoCategory, CocoFile, CocoImage, Regions, read_coco_file
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.datasets.reading.files import is_file
from layerboard.zoo.errors import shortened, some

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartImageNetEntry(DatasetEntry[Regions]):
    """A dataset in the layout of PartImageNet, and its official counts.

    Super-categories and classes are sorted, and classes take turns in the sample of images. By partition, as
    in the code of Walmer et al., CVPR 2023, the classes of one partition come before those of the next,
    super-categories are sorted by their first class, and images are sampled class by class.
    """

    roles = ("parts", "masks")
    form = "{0.folder}/{{train,val,test}}.json and {0.folder}/{{train,val,test}}/<wnid>/*.JPEG"

    name: str = "partimagenet"
    folder: str = "PartImageNet"
    splits = ("train", "val", "test")  # names of the partitions that are merged
    per_supercategory: int = 100  # images that are sampled from each super-category
    images: int = 24_095
    classes: int = 158
    supercategories: int = 11
    parts: int = 40
    by_partition: bool = False
    objects: int = 80  # number of clusters of the object dataset, COCO
    parts_as_objects: bool = False  # whether parts are clustered into as many

    def read(self, data: Path) -> Regions:
        """Images sampled from each super-category, with their parts; a region's label is its category.

        A class belongs to the super-category of the first annotation of its images. The sample is drawn from
        all listed images; images missing on disk are then left out and counted.
        """
        root = self.root(data)
        files = {split: read_coco_file(root / f"{split}.json") for split in self._splits(root)}
        categories = _merge_categories(files.values())
        by_class = _classes(files, self.by_partition)
        groups = _supercategories(by_class, files, categories)
        sampled = self._sample(by_class, groups)
        there = [(item, path) for item in sampled if is_file(path := item.path(root))]
        loaded = [files[item.split].load(item.image, path, item.key) for item, path in there]
        images = tuple(image for image in loaded if image.regions)
        example = sampled[0].path(root) if sampled else "<wnid>/*.JPEG"
        require(images, f"annotated images such as {example} in {root}")
        counts = (
            Count("images listed", sum(len(file.images) for file in files.values()), self.images),
            Count("classes", len(by_class), self.classes),
            Count("super-categories", len(groups), self.supercategories),
            Count("part categories", len(categories), self.parts),
            Count("sampled images", len(there), len(sampled)),
            Count("images with regions", len(images)),
            Count("regions", sum(len(image.regions) for image in images)),
        )
        bare = sorted({*by_class} - {wnid for classes in groups.values() for wnid in classes})
        names = {identity: category.name for identity, category in categories.items()}
        return Regions(
            self.name,
            images,
            names,
            Coverage(counts, self._notes(files, bare)),
            edition="-by-partition" if self.by_partition else "",
            clusters=self.objects if self.parts_as_objects else self.parts,
            unit="parts",
            split="train, val, test",
        )

    def _notes(self, files: Mapping[str, CocoFile], bare: Sequence[str]) -> tuple[str, ...]:
        """What a reader must know of partitions that are missing, and of classes without annotation."""
        missing = [f"{split}.json" for split in self.splits if split not in files]
        return (
            *([f"without {', '.join(missing)}"] if missing else []),
            *([f"{len(bare)} classes have no annotation ({some(bare)})"] if bare else []),
            *(note for file in files.values() for note in file.notes),
        )

    def _splits(self, root: Path) -> list[str]:
        splits = [split for split in self.splits if is_file(root / f"{split}.json")]
        wanted = " or ".join(f"{split}.json" for split in self.splits)
        require(splits, f"{wanted} in {root}", remedy="the original release of PartImageNet is meant")
        return splits

    def _sample(
        self, by_class: Mapping[str, Sequence["_Item"]], groups: Mapping[str, Sequence[str]]
    ) -> list["_Item"]:
        sampled: list[_Item] = []
        for name in groups if self.by_partition else sorted(groups):
            rank = {wnid: position for position, wnid in enumerate(groups[name])}
            taken = sample_in_turns([by_class[wnid] for wnid in rank], self.per_supercategory)
            sampled += sorted(taken, key=lambda item: rank[item.wnid]) if self.by_partition else taken
        return sampled


PARTIMAGENET = PartImageNetEntry()


class _Item(NamedTuple):
    """An image of a partition; items are sorted by class, then by file name."""

    wnid: str
    file: str
    split: str
    image: CocoImage

    @property
    def key(self) -> str:
        return f"{self.split}/{self.wnid}/{self.file}"

    def path(self, root: Path) -> Path:
        """File of the image: in its class folder, or at the path in its file name."""
        sorted_away, stated = root / self.key, root / self.split / self.image.file_name
        return stated if is_file(stated) and not is_file(sorted_away) else sorted_away


def sample_in_turns(classes: Sequence[Sequence[T]], most: int) -> list[T]:
    """Up to ``most`` items: the first of every class, then the second of those that have one, and so on."""
    return list(islice((item for turn in zip_longest(*classes) for item in turn if item is not None), most))


def _merge_categories(files: Iterable[CocoFile]) -> dict[int, CocoCategory]:
    """The part categories of all partitions; raises InputError if they disagree."""
    merged: dict[int, CocoCategory] = {}
    for file in files:
        for identity, category in file.categories.items():
            first = merged.setdefault(identity, category)
            names = f"{shortened(first.name)} and, in {file.path}, {shortened(category.name)}"
            same = "the same categories in every partition"
            require(first == category, same, f"{names} with id {identity}")
    return dict(sorted(merged.items()))


def _classes(files: Mapping[str, CocoFile], by_partition: bool) -> dict[str, list[_Item]]:
    """Images of each class, sorted by file name; classes are sorted, optionally within partitions."""
    items = []
    for split, image in ((split, image) for split, file in files.items() for image in file.images):
        path = PurePosixPath(image.file_name)
        wnid = path.parent.name or path.name.rsplit("_", 1)[0]  # folder, or part before the underscore
        items.append(_Item(wnid, path.name, split, image))
    by_class = {wnid: [*same] for wnid, same in groupby(sorted(items), key=attrgetter("wnid"))}
    if not by_partition:
        return by_class
    rank = {split: number for number, split in enumerate(files)}
    first = {wnid: min(rank[item.split] for item in items) for wnid, items in by_class.items()}
    return {wnid: by_class[wnid] for wnid in sorted(by_class, key=lambda wnid: (first[wnid], wnid))}


def _supercategories(
    by_class: Mapping[str, Sequence[_Item]],
    files: Mapping[str, CocoFile],
    categories: Mapping[int, CocoCategory],
) -> dict[str, list[str]]:
    """Classes of each super-category, in the order of the classes; raises InputError."""
    groups: dict[str, list[str]] = defaultdict(list)
    for wnid, items in by_class.items():
        stated = ((item, label) for item in items for label in files[item.split].labels(item.image))
        for item, label in islice(stated, 1):
            where = f"an annotation of class {wnid} of {files[item.split].path}"
            require(label in categories, f"a category that is listed in {where}", label)
            groups[categories[label].supercategory].append(wnid)
    return groups
