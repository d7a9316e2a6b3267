"""ImageNet-1k: ``train/<wnid>/*`` and ``val/<wnid>/*``, and datasets with such folders of classes."""

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
from layerboard.tasks.datasets.packs.hub_tables import has_tables
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
