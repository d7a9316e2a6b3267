"""PASCAL VOC 2012 segmentation: ``VOCdevkit/VOC2012`` with images, palette masks and lists of ids."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import DatasetEntry, Part, require_directory
from tasks.datasets.files import exists, is_file, read_bytes, require_inside, some
from tasks.datasets.scenes import FoundScenes, Scenes, coverage_of, find_scenes, require_apart
from zoo.errors import InputError, MissingDataError

VOC_CLASSES = (
    "background",
    *("aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
    *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train"),
    "tvmonitor",
)
"""Names of the classes by their pixel value, as the development kit numbers them."""


@dataclass(frozen=True, slots=True)
class VocEntry(DatasetEntry[Scenes]):
    """A dataset in the layout of VOC 2012, and its official counts.

    Attributes:
        name: Name of the dataset.
        train: File of the ids of training images, in ``ImageSets/Segmentation``.
        train_masks: Folder of their masks.
        train_images: Official number of training images.
        val_images: Official number of validation images.
        memory: Cells of training images that `standard` remembers at most.
        folder: Its folder under the data folder.
        most: Cells that protocols with a number of their own remember at most; None for theirs.
    """

    name: str = "voc-2012-val"
    train: str = "train"
    train_masks: str = "SegmentationClass"
    train_images: int = 1464
    val_images: int = 1449
    memory: int = 100_000
    folder: str = "VOCdevkit/VOC2012"
    most: int | None = None

    @property
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""
        return (
            f"{self.folder}/ImageSets/Segmentation/{{{self.train},val}}.txt, {self.folder}/JPEGImages/*.jpg, "
            f"{self.folder}/{self.train_masks}/*.png and {self.folder}/SegmentationClass/*.png"
        )

    def read(self, data: Path) -> Scenes:
        """The images of both splits that are there with their masks, by sorted id."""
        root = self.root(data)
        lists = root / "ImageSets" / "Segmentation"
        require_directory(lists, f"the lists of {self.name}")
        require_directory(root / self.train_masks, f"the masks of {self.name}")
        train, val = (read_ids(lists / f"{split}.txt") for split in (self.train, "val"))
        require_apart(train, val, self.name)
        memory = _scenes(root, self.train_masks, train, f"{self.train} of {self.name}")
        queries = _scenes(root, "SegmentationClass", val, f"val of {self.name}")
        coverage = coverage_of(memory, queries, self.train_images, self.val_images)
        scenes = memory.scenes, queries.scenes
        return Scenes(self.name, *scenes, VOC_CLASSES, 0, self.memory, coverage, self.most)

    def contents(self, data: Path) -> Iterable[Part]:
        """Lists, images and masks; of images and masks without the other, what is there."""
        root = data / self.folder
        paths: list[Path] = []
        for split, masks in ((self.train, self.train_masks), ("val", "SegmentationClass")):
            ids = root / "ImageSets" / "Segmentation" / f"{split}.txt"
            paths.append(ids)
            for key in read_ids(ids):
                paths += filter(is_file, (root / "JPEGImages" / f"{key}.jpg", root / masks / f"{key}.png"))
        yield Part("files", paths)


VOC_2012 = VocEntry()
VOC_2012_AUG = VocEntry(
    name="voc-2012-aug-val", train="trainaug", train_masks="SegmentationClassAug", train_images=10_582
)
"""With the masks of Hariharan et al., Semantic Contours from Inverse Detectors, ICCV 2011."""


def _scenes(root: Path, masks: str, ids: list[str], where: str) -> FoundScenes:
    files = ((key, root / "JPEGImages" / f"{key}.jpg", root / masks / f"{key}.png") for key in ids)
    return find_scenes(files, where)


def read_ids(path: Path) -> list[str]:
    """Sorted ids of a list; raises InputError."""
    if not exists(path):
        raise MissingDataError(f"expected a list of image ids at {path}, which does not exist")
    try:
        lines = read_bytes(path).decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"expected a list of image ids at {path}: {error}") from error
    ids = [line.strip() for line in lines if line.strip()]
    if not ids or len({*ids}) != len(ids):
        raise InputError(f"expected one image id a line in {path}, each once, found {some(ids) or 'none'}")
    return sorted(require_inside(one, str(path)) for one in ids)
