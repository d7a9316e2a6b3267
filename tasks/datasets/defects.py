"""Photographs of products with and without defects: the layouts of MVTec AD and VisA."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from layerboard.tasks.datasets.base import (
    Count,
    Coverage,
    Data,
    DatasetEntry,
    FileSample,
    PhotoSample,
    Sample,
    first_of_each,
)
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.datasets.reading import files as storage
from layerboard.tasks.datasets.reading.labels import read_label_table
from layerboard.tasks.datasets.reading.masks import read_region
from layerboard.tasks.datasets.reading.names import normal, unseen_twins
from layerboard.tasks.metrics.arrays import Mask
from layerboard.zoo.errors import counted, some
from layerboard.zoo.view.photos import endings

GOOD = "good"  # the folder of images without a defect
MEMORY = 100_000  # largest number of remembered patches of a product's reference images
TABLE = Path("split_csv") / "1cls.csv"  # VisA's table of images
COLUMNS = ("object", "split", "label", "image", "mask")


@dataclass(frozen=True, slots=True)
class ScoredImage:
    """An image to score: ``kind`` of its defect, ``good`` for none; size is (width, height)."""

    sample: Sample
    kind: str
    size: tuple[int, int]
    mask: Path | None  # it marks the defect (`read_region`); None without a mask


@dataclass(frozen=True)
class Product:
    """A product with good reference images, sorted by name, and images to score."""

    name: str
    references: tuple[Sample, ...]
    images: tuple[ScoredImage, ...]

    @cached_property
    def marked(self) -> tuple[float, ...]:
        """Share of the pixels of each image that its mask marks; without one, 1 if its kind is a defect."""

        def share(image: ScoredImage) -> float:
            return float(image.kind != GOOD if image.mask is None else read_defect(image).mean())

        with ThreadPool() as pool:
            return tuple(pool.map(share, self.images))

    @property
    def defect(self) -> tuple[bool, ...]:
        """Whether each image shows a defect: its mask marks a pixel, or without one its kind says so."""
        return tuple(share > 0 for share in self.marked)

    @property
    def masked(self) -> bool:
        """Whether every image of a defect has a mask."""
        return all(image.mask is not None for image in self.images if image.kind != GOOD)

    def first(self, count: int) -> "Product":
        """The first ``count`` references, and the first ``count`` images of each kind."""
        kinds = [*dict.fromkeys(image.kind for image in self.images)]
        few = first_of_each(self.images, count, lambda image: image.kind)
        ordered = sorted(few, key=lambda image: kinds.index(image.kind))
        return Product(self.name, self.references[:count], tuple(ordered))


@dataclass(frozen=True, slots=True)
class Defects(Data):
    """Products with defects; ``memory`` is the largest number of remembered patches of each."""

    name: str
    products: tuple[Product, ...]
    memory: int
    coverage: Coverage
    role = "defects"

    @property
    def truth(self) -> tuple[object, ...]:
        images = [image for product in self.products for image in product.images]
        masks = (image.mask for image in images if image.mask is not None)
        return storage.names_and_sizes(masks), [image.kind for image in images], self.memory

    def held_apart(self) -> Iterator[tuple[str, Iterable[Sample], str, Iterable[Sample]]]:
        for each in self.products:
            yield f"train of {each.name}", each.references, "test", (image.sample for image in each.images)

    def limited(self, limit: int) -> Self:
        coverage = self.coverage.noted(f"limited to {counted(limit, 'images')} of each kind")
        return replace(self, products=tuple(each.first(limit) for each in self.products), coverage=coverage)


class ProductFiles(NamedTuple):
    """Files of a product: references, and kind, image and mask (if any) of each image to score."""

    references: list[Path]
    images: list[tuple[str, Path, Path | None]]
    strays: Sequence[Path] = ()  # masks whose names match no image


@dataclass(frozen=True, slots=True)
class DefectEntry(DatasetEntry[Defects]):
    """A dataset of defects in either layout, with official counts."""

    roles = ("defects",)
    form = "{0.folder}/{0.layout_below}"

    name: str
    folder: str
    products: int
    references: int
    images: int
    layout_below: str = "NAME/{train/good,test/KIND}/*.png and NAME/ground_truth/KIND/*_mask.png"
    memory: int = MEMORY

    def read(self, data: Path) -> Defects:
        official = self.products, self.references, self.images
        return _defects(self.name, self.root(data), self.memory, FileSample, official)


MVTEC_AD = DefectEntry(
    name="mvtec-ad", folder="mvtec_anomaly_detection", products=15, references=3629, images=1725
)
VISA = DefectEntry(
    name="visa",
    folder="VisA",
    products=12,
    references=8659,
    images=2162,
    layout_below=f"{TABLE.as_posix()} and the images and masks that it names",
)


def has_defects(folder: Path) -> bool:
    """Whether the user's folder has a layout of defects, with one or several products."""
    return storage.is_file(folder / TABLE) or bool(storage.is_folder(folder) and _products(folder))


def read_defects(folder: Path) -> Defects:
    """The user's own photographs of products, named after the folder; raises InputError."""
    name = normal(storage.require_text(folder.resolve().name, "the name of the folder of images"))
    return _defects(name, folder, MEMORY, PhotoSample)


def _products(root: Path) -> dict[str, Path]:
    """Product folders in the layout of MVTec AD, by name; the folder itself if it is a product."""
    if _is_product(root):
        return {root.resolve().name: root}
    return {name: root / name for name in storage.folder_names(root) if _is_product(root / name)}


def _is_product(folder: Path) -> bool:
    """Whether a folder has only good training images, and some images to score."""
    train = folder / "train"
    there = all(storage.is_folder(each) for each in (train / GOOD, folder / "test"))
    return there and storage.folder_names(train) == [GOOD]


def _of_folders(folder: Path) -> ProductFiles:
    """The files of a product in the layout of MVTec AD."""
    images: list[tuple[str, Path, Path | None]] = []
    strays: list[Path] = []
    truths = folder / "ground_truth"
    kinds = storage.folder_names(truths) if storage.is_folder(truths) else []
    of_kind = {normal(kind): kind for kind in kinds}
    for kind in storage.folder_names(folder / "test"):
        truth = truths / of_kind.get(normal(kind), kind)
        names = storage.file_names(truth) if storage.is_folder(truth) else []
        masks = {normal(name): truth / name for name in names}
        images += [
            (normal(kind), path, masks.pop(normal(f"{path.stem}_mask.png"), None))
            for path in _images(folder / "test" / kind)
        ]
        strays += sorted(masks.values())
    return ProductFiles(_images(folder / "train" / GOOD), images, strays)


def _images(folder: Path) -> list[Path]:
    return [folder / name for name in storage.file_names(folder, endings())]


def _of_table(root: Path) -> dict[str, ProductFiles]:
    """The files of products in VisA's table; raises InputError."""
    table = read_label_table(root / TABLE)
    columns = f"the columns {', '.join(COLUMNS)} and a row for each image in {table.path}"
    require({*COLUMNS} <= {*table.header}, columns, some(table.header, 6))
    products: dict[str, ProductFiles] = defaultdict(lambda: ProductFiles([], []))
    for row in table.rows:
        stated = f"train or test and an image in line {row.number} of {table.path}"
        is_right = row.split in ("train", "test") and row.path
        require(is_right, stated, f"{row.split!r} and {row.path!r}")
        cells = dict(zip(table.header, row.cells, strict=True))
        names = filter(None, (row.path, cells["mask"]))
        paths = [root / storage.require_inside(name, str(table.path)) for name in names]
        files = products[cells["object"]]
        if row.split == "train":
            files.references.append(paths[0])
        else:
            kind = GOOD if row.label == "normal" else row.label
            files.images.append((kind, paths[0], paths[1] if len(paths) > 1 else None))
    return products


def _defects(
    name: str,
    root: Path,
    memory: int,
    make: type[FileSample],
    official: tuple[int | None, ...] = (None, None, None),
) -> Defects:
    """The products below a folder, counted beside the official numbers; raises InputError."""
    notes: list[str] = []
    if storage.is_file(root / TABLE):
        listed = _of_table(root)
    else:
        listed = {name: _of_folders(folder) for name, folder in _products(root).items()}
    products = tuple(_product(normal(name), listed[name], root, make, notes) for name in sorted(listed))
    require(products, f"folders NAME/train/good and NAME/test in {root}, or the table {TABLE}", "neither")
    images = [pair for each in products for pair in zip(each.images, each.marked, strict=True)]
    notes += unseen_twins((image.kind for image, _ in images), "kinds of defects")
    notes += unseen_twins((product.name for product in products), "products")
    there = len(products), sum(len(product.references) for product in products), len(images)
    counts = tuple(map(Count, ("products", "reference images", "test images"), there, official))
    defective = [image for image, share in images if share]
    masks = sum(image.mask is not None for image in defective)
    remarks = [f"{len(defective):,} test images with a defect, {masks:,} of them with a mask"]
    if whole := [image.sample.key for image, share in images if image.mask is not None and share == 1]:
        remarks.append(f"{counted(len(whole), 'masks')} of the whole image ({some(whole, 2)})")
    if black := [image.sample.key for image, share in images if image.kind != GOOD and not share]:
        remarks.append(f"{counted(len(black), 'masks')} all black, so without a defect ({some(black, 2)})")
    if marked := [image.sample.key for image, share in images if image.kind == GOOD and share]:
        remarks.append(f"{counted(len(marked), 'good images')} with a defect by the mask ({some(marked, 2)})")
    return Defects(name, products, memory, Coverage(counts, tuple(notes), tuple(remarks)))


def _product(name: str, files: ProductFiles, root: Path, make: type[FileSample], notes: list[str]) -> Product:
    """A product with its images named by path; missing masks are added to ``notes``."""
    for paths, what in ((files.references, "good images to learn from"), (files.images, "images to score")):
        require(paths, f"{what} of {name} in {root}")

    def sample(path: Path) -> FileSample:
        return make(path.relative_to(root).as_posix(), str(path))

    images = []
    for kind, path, mask in files.images:
        size = storage.image_size(path, turned=make is PhotoSample)
        if mask is not None:
            storage.require_size(mask, size, f"its image {path}", storage.RESAVE)
        images.append(ScoredImage(sample(path), kind, size, mask))
    product = Product(name, tuple(map(sample, sorted(files.references))), tuple(images))
    if len({*product.defect}) == 1:
        lacking = f"without a defect (in test/{GOOD})" if product.defect[0] else "with a defect"
        notes.append(f"no test image of {name} {lacking}: AUROC is not defined")
    bare = [image.sample.key for image in images if image.kind != GOOD and image.mask is None]
    if files.strays:
        strays = some([path.relative_to(root).as_posix() for path in files.strays], 2)
        notes.append(f"{counted(len(files.strays), 'masks')} of no image, expected NAME_mask.png ({strays})")
    if bare and any(image.mask is not None for image in images):
        notes.append(f"{counted(len(bare), 'defects')} of {name} without a mask ({some(bare, 2)})")
    return product


def read_defect(image: ScoredImage) -> Mask:
    """Mask of the defect of an image, [height width]: the pixels that its mask file marks."""
    if image.mask is None:
        return np.zeros(image.size[::-1], np.bool_)
    return read_region(image.mask)
