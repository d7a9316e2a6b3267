"""ImageNet-1k: ``train/<wnid>/*`` and ``val/<wnid>/*``, and datasets with such folders of classes.

CIFAR-10 and CIFAR-100 are read from the Hub's tables, or as PNG files in folders of classes, such as those of
fast.ai's archive ``cifar10.tgz``. Write the images of the authors' batches there to use those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from layerboard.tasks.datasets.base import Coverage, DatasetEntry, FileSample
from layerboard.tasks.datasets.classes import (
    Classification,
    LabelledSample,
    Official,
    ProbeSubset,
    classification,
    read_class_folders,
)
from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.integrity import require, require_distinct, require_no
from layerboard.tasks.datasets.packs.hub_tables import has_tables, tables_of
from layerboard.tasks.datasets.reading.files import data_root

# fmt: off
_CLASSES_50 = (
    "n01601694", "n01669191", "n01755581", "n01770393", "n01855672", "n02018207", "n02058221", "n02096177",
    "n02097130", "n02099267", "n02100877", "n02104365", "n02106030", "n02114855", "n02125311", "n02133161",
    "n02484975", "n02489166", "n02747177", "n02906734", "n03124170", "n03272010", "n03337140", "n03483316",
    "n03498962", "n03710721", "n03717622", "n03733281", "n03759954", "n03775071", "n03814639", "n03837869",
    "n03838899", "n03854065", "n03954731", "n03983396", "n04026417", "n04200800", "n04209239", "n04311004",
    "n04380533", "n04428191", "n04443257", "n04509417", "n04525305", "n04554684", "n04606251", "n07583066",
    "n07711569", "n07753592",
)
# fmt: on
IMAGENET_50 = ProbeSubset(_CLASSES_50, per_class=100)
"""The classes in the code of Walmer et al., CVPR 2023."""

_UNSORTED_VAL = (
    "the official validation archive is one flat folder: sort its images into folders val/<wnid>/ "
    "by the ground truth of the development kit"
)


@dataclass(frozen=True, slots=True)
class ImageNetEntry(DatasetEntry[Classification]):
    """A dataset in the layout of ImageNet, a folder for each class, with official counts."""

    roles = ("classification",)

    name: str = "imagenet"
    folder: str = "imagenet"
    classes: int = 1000
    train: int = 1_281_167
    val: int = 50_000
    probe: ProbeSubset = IMAGENET_50
    below: str = "<wnid>/*.JPEG"  # files of a split, for people
    tested: str = "val"  # folder of the images that are tested
    unsorted: str = _UNSORTED_VAL  # what to do if these are not in folders of classes
    class_names: tuple[tuple[str, str], ...] = ()
    source: str = ""
    revision: str = ""
    # Number, in its file name, of the first training image that is tested in place of those of ``tested``;
    # None if these are tested.
    first_tested: int | None = None

    @property
    def layout(self) -> str:
        train = f"{self.folder}/train/{self.below}"
        if self.first_tested is not None:
            return f"{train}, numbered, as `--data hf:` reads them; {self.first_tested} and later are tested"
        return f"{train} and {self.folder}/{self.tested}/{self.below}"

    def root(self, data: Path) -> Path:
        """The dataset's folder; that of a pack if there are tables of the Hub in place of class folders."""
        root = DatasetEntry.root(self, data)
        return data_root(Path(f"{PREFIX}{root}")) / self.folder if has_tables(root) else root

    def read(self, data: Path) -> Classification:
        """The existing images of both splits; keys are ``train/<class>/<file>``."""
        root = self.root(data)
        bank = _images(read_class_folders(root / "train"), root, "train")
        tested = "train" if self.first_tested is not None else self.tested
        if self.first_tested is not None:
            bank, queries = _parted(bank, self.first_tested, str(root / "train"))
        else:
            queries = _images(read_class_folders(root / tested, self.unsorted), root, tested)
        where, official = str(root / tested), Official(self.classes, self.train, self.val)
        images = classification(self.name, bank, queries, where, Coverage(), official)
        return replace(images, probe=self.probe)


IMAGENET = ImageNetEntry()
# Zhou et al., TPAMI 2018: Places365-Standard, in its small form of 256 x 256 px. Counts are those that the
# documentation of torchvision's Places365 has; the layout of the archive is from memory, not looked up.
PLACES_365 = ImageNetEntry(
    name="places365",
    folder="places365_standard",
    classes=365,
    train=1_803_460,
    val=36_500,
    probe=ProbeSubset(None, per_class=14),  # about 5,000 images, as ImageNet-50 has
    below="<class>/*.jpg",
    unsorted="take the archive in easy format, whose images lie in folders val/<class>/",
)
# Van Horn et al., CVPR 2021, arXiv:2103.16483: the full training set; the 500,000 images of train_mini
# may lie in folder train instead, which is then said to be partial. Counts and layout are from memory, not
# looked up.
INATURALIST_2021 = ImageNetEntry(
    name="inaturalist2021",
    folder="inat2021",
    classes=10_000,
    train=2_686_843,
    val=100_000,
    probe=ProbeSubset(None, per_class=1),
    below="<class>/*.jpg",
    unsorted="its archive val.tar.gz has them in folders val/<class>/",
)
# Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009
CIFAR_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)


def _cifar(name: str, classes: int, probe: ProbeSubset) -> ImageNetEntry:
    tables = tables_of(f"uoft-cs/{name}")
    return ImageNetEntry(
        name=name,
        folder=tables.folder,
        classes=classes,
        train=50_000,
        val=10_000,
        probe=probe,
        below="<class>/*.png",
        tested="test",
        unsorted="sort its images into folders test/<class>/",
        source=f"hf:{tables.repository}",
        revision=tables.revision or "",
    )


# as many probe images as ImageNet-50 has
CIFAR_10 = _cifar("cifar10", len(CIFAR_CLASSES), ProbeSubset(CIFAR_CLASSES, per_class=500))
CIFAR_100 = _cifar("cifar100", 100, ProbeSubset(None, per_class=50))
# The split of Raghu et al., NeurIPS 2021, arXiv:2108.08810: the last 5,000 training images are validation.
CIFAR_RAGHU = tuple(
    replace(entry, name=f"{entry.name}-raghu", train=45_000, val=5_000, first_tested=45_000)
    for entry in (CIFAR_10, CIFAR_100)
)


def _parted(
    images: Sequence[LabelledSample], first: int, where: str
) -> tuple[list[LabelledSample], list[LabelledSample]]:
    """Images before a number and from it on, by the numbers that are their names; raises InputError."""
    sides: tuple[list[LabelledSample], list[LabelledSample]] = ([], [])
    stems = [Path(image.key).stem for _, image in images]
    numbered = (
        f"a number of its own as the name of each image in {where}, counted over all classes in the order "
        "of the authors' file"
    )
    remedy = "read the dataset from the Hub instead"
    require_no([repr(stem) for stem in stems if not (stem.isascii() and stem.isdigit())], numbered, remedy)
    require_distinct([*map(int, stems)], numbered, remedy)
    for stem, image in zip(stems, images, strict=True):
        sides[int(stem) >= first].append(image)
    both = f"images of numbers below {first} and from {first} on in {where}, to test"
    require(all(sides), both, f"{len(sides[0]):,} and {len(sides[1]):,}")
    return sides


def _images(folders: Mapping[str, Sequence[str]], root: Path, split: str) -> list[LabelledSample]:
    above, keys = f"{root}/", ((wnid, f"{split}/{wnid}/{file}") for wnid in folders for file in folders[wnid])
    return [(wnid, FileSample(key, above + key)) for wnid, key in keys]
