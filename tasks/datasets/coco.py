"""COCO val2017: ``images/val2017/*.jpg`` and ``annotations/instances_val2017.json``."""

from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.base import Count, Coverage, FileSample, RegionImage, Regions, require_directory
from tasks.datasets.coco_format import orphan_notes, read_coco_file
from tasks.datasets.files import require_size
from tasks.datasets.storage import is_file, is_folder
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class CocoEntry:
    """A dataset in the layout of COCO, and its official counts.

    Attributes:
        name: Name of the dataset.
        folder: Its folder under the data folder.
        images_folder: Folder of the images in it; without its parent it is found, too.
        annotations: File of instances in it.
        images: Official number of images in that file.
        first: Number of images that are used, by ascending id; those without annotations count.
    """

    name: str = "coco-val2017"
    folder: str = "coco"
    images_folder: str = "images/val2017"
    annotations: str = "annotations/instances_val2017.json"
    images: int = 5000
    first: int = 1000

    @property
    def layout(self) -> str:
        """The files that are expected below the data folder, in words."""
        return f"{self.folder}/{self.images_folder}/*.jpg and {self.folder}/{self.annotations}"


COCO_VAL2017 = CocoEntry()


def read_coco(data: Path, entry: CocoEntry = COCO_VAL2017) -> Regions:
    """The first images of COCO, by ascending id, that are on disk and have usable annotations.

    Args:
        data: Folder that holds the dataset's folder.
        entry: Folder names and official counts.

    Raises:
        InputError: A wrong layout, a malformed file, an image of another size than stated, or no image.
    """
    root = data / entry.folder
    require_directory(root, f"{entry.name} ({entry.layout})")
    file = read_coco_file(root / entry.annotations)
    folder = images_folder(root, entry)
    wanted = file.images[: entry.first]
    there = [image for image in wanted if is_file(folder / image.file_name)]
    if not there:
        raise InputError(
            f"expected the images that {file.path} lists (such as {wanted[0].file_name}) in {folder}, "
            "found none; unpack them there"
        )
    images: list[RegionImage] = []
    for image in there:
        path = folder / image.file_name
        require_size(path, image.size, file.path.name)
        regions = file.regions(image, f"{image.file_name}/")
        if regions:
            images.append(RegionImage(FileSample(image.file_name, str(path)), image.size, regions))
    if not images:
        raise InputError(f"expected annotations of the images in {folder} in {file.path}, found none")
    counts = (
        Count("images listed", len(file.images), entry.images),
        Count("images used", len(there), entry.first),
        Count("images with regions", len(images)),
        Count("regions", sum(len(image.regions) for image in images)),
    )
    categories = {identity: category.name for identity, category in file.categories.items()}
    return Regions(entry.name, tuple(images), categories, Coverage(counts, orphan_notes([file])))


def images_folder(root: Path, entry: CocoEntry) -> Path:
    """Folder of the images: the entry's, or the same without its parent; raises InputError."""
    folders = [root / entry.images_folder, root / Path(entry.images_folder).name]
    for folder in folders:
        if is_folder(folder):
            return folder
    raise InputError(f"expected the images of {entry.name} in {folders[0]} or {folders[1]}, found neither")
