"""ADE20k scene parsing: ``ADEChallengeData2016`` with images and greyscale masks of 150 classes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import DatasetEntry, Part, require_directory
from tasks.datasets.files import file_names, file_paths
from tasks.datasets.scenes import FoundScenes, Scenes, coverage_of, find_scenes, require_apart

ADE20K_CLASSES = tuple(f"class {number}" for number in range(1, 151))
"""Names of the classes by their pixel value less one, as ``objectInfo150.txt`` numbers them."""


@dataclass(frozen=True, slots=True)
class AdeEntry(DatasetEntry[Scenes]):
    """A dataset in the layout of ADE20k's scene parsing challenge, and its official counts.

    Attributes:
        name: Name of the dataset.
        train_images: Official number of training images.
        val_images: Official number of validation images.
        memory: Cells of training images that `standard` remembers at most.
        folder: Its folder under the data folder.
    """

    name: str = "ade20k-val"
    train_images: int = 20_210
    val_images: int = 2_000
    memory: int = 100_000
    folder: str = "ADEChallengeData2016"

    @property
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""
        return (
            f"{self.folder}/images/{{training,validation}}/*.jpg and "
            f"{self.folder}/annotations/{{training,validation}}/*.png"
        )

    def read(self, data: Path) -> Scenes:
        """The images of both splits that are there with their masks, by sorted name.

        Pixel value 0 ("other") is no class; 1 to 150 become classes 0 to 149.
        """
        root = self.root(data)
        memory, queries = (_scenes(root, split, self.name) for split in ("training", "validation"))
        train, val = ([Path(scene.sample.key).stem for scene in one.scenes] for one in (memory, queries))
        require_apart(train, val, self.name)
        coverage = coverage_of(memory, queries, self.train_images, self.val_images)
        return Scenes(self.name, memory.scenes, queries.scenes, ADE20K_CLASSES, 1, self.memory, coverage)

    def contents(self, data: Path) -> Iterable[Part]:
        """Images and masks of both splits."""
        root = data / self.folder
        splits = ("training", "validation")
        images = (path for split in splits for path in file_paths(root / "images" / split, ".jpg"))
        masks = (path for split in splits for path in file_paths(root / "annotations" / split, ".png"))
        yield Part("files", [*images, *masks])


ADE20K = AdeEntry()


def _scenes(root: Path, split: str, name: str) -> FoundScenes:
    images, masks = root / "images" / split, root / "annotations" / split
    require_directory(images, f"the images of {name}")
    require_directory(masks, f"the masks of {name}")
    return find_scenes(_files(images, masks, split), f"{split} of {name}")


def _files(images: Path, masks: Path, split: str) -> Iterator[tuple[str, Path, Path]]:
    stems = {Path(one).stem for one in file_names(images, (".jpg",))}
    stems |= {Path(one).stem for one in file_names(masks, (".png",))}
    for stem in sorted(stems):
        yield f"{split}/{stem}", images / f"{stem}.jpg", masks / f"{stem}.png"
