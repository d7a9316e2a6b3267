"""VTAB-1k: nineteen classification datasets of 1,000 training images each, in three groups.

Source: Zhai et al., A Large-scale Study of Representation Learning with the Visual Task Adaptation Benchmark,
arXiv:1910.04867; numbers of classes and test images as in its code (google-research/task_adaptation, commit
d2a72ed). The layout is that of the copies that work on adapting networks shares: a folder for each dataset
with lists of images, ``train800.txt``, ``val200.txt``, both together as ``train800val200.txt``, and
``test.txt``, in each line the path of an image and the number of its class.
"""

from dataclasses import dataclass
from pathlib import Path

from layerboard.tasks.datasets.base import Coverage, DatasetEntry, FileSample
from layerboard.tasks.datasets.classes import Classification, LabelledSample, Official, classification
from layerboard.tasks.datasets.integrity import require
from layerboard.tasks.datasets.reading.files import is_file, read_lines, require_inside
from layerboard.zoo.errors import shortened

TRAIN, TEST = "train800val200.txt", "test.txt"  # lists of the 1,000 training images and of the test images


@dataclass(frozen=True, slots=True)
class VtabEntry(DatasetEntry[Classification]):
    """A dataset of VTAB-1k; a class may lack training images, and is counted all the same."""

    roles = ("classification",)
    form = f"{{0.folder}}/{TRAIN}, {{0.folder}}/{TEST} and the images that they list"

    name: str
    folder: str
    classes: int
    val: int | None  # official number of test images; None if sources disagree
    group: str
    train: int = 1000  # images of both lists for training
    source: str = "hf:XiN0919/VTAB-1k, whose vtab-1k.zip is to be unpacked"

    def read(self, data: Path) -> Classification:
        """The existing images of both lists; keys are their paths, classes their numbers."""
        root = self.root(data)
        train, test = (self._listed(root, name) for name in (TRAIN, TEST))
        names = tuple(map(self._class, range(self.classes)))
        official = Official(self.classes, self.train, self.val, names)
        return classification(self.name, train, test, str(root / TEST), Coverage(), official)

    def _class(self, number: int) -> str:
        """Name of a class, so that names sort as numbers do."""
        return f"{number:0{len(str(self.classes - 1))}d}"

    def _listed(self, root: Path, name: str) -> list[LabelledSample]:
        """The images of a list that exist, with their classes; raises InputError for a wrong line."""
        where = root / name
        images: list[LabelledSample] = []
        stated = f"a path and a class from 0 to {self.classes - 1} in each line of {where}"
        for line in read_lines(where, "a list of images"):
            path, _, label = line.rpartition(" ")
            is_number = label.isascii() and label.isdigit()
            require(path and is_number and int(label) < self.classes, stated, shortened(line))
            key = require_inside(path.strip(), str(where))
            if is_file(root / key):
                images.append((self._class(int(label)), FileSample(key, f"{root}/{key}")))
        require(images, f"images that {where} lists below {root}")
        return images


_SETS = {
    "natural": (
        ("caltech101", 102, 6_084),
        ("cifar", 100, 10_000),
        ("dtd", 47, 1_880),
        ("oxford_flowers102", 102, 6_149),
        ("oxford_iiit_pet", 37, 3_669),
        ("sun397", 397, 21_750),
        ("svhn", 10, 26_032),
    ),
    "specialised": (
        ("patch_camelyon", 2, 32_768),
        ("eurosat", 10, 5_400),
        ("resisc45", 45, 6_300),
        ("diabetic_retinopathy", 5, 42_670),
    ),
    "structured": (
        ("clevr_count", 8, 15_000),
        ("clevr_dist", 6, 15_000),
        ("dmlab", 6, 22_735),
        ("dsprites_loc", 16, 73_728),
        ("dsprites_ori", 16, 73_728),
        ("kitti", 4, None),  # by its code a tenth of the training images, or those of the test split
        ("smallnorb_azi", 18, 12_150),
        ("smallnorb_ele", 9, 12_150),
    ),
}
VTAB = tuple(
    VtabEntry(f"vtab-{folder.replace('_', '-')}", f"vtab-1k/{folder}", classes, test, group)
    for group, rows in _SETS.items()
    for folder, classes, test in rows
)
"""The nineteen datasets, in the order of Table 9 of Dosovitskiy et al., ICLR 2021."""
