"""Which files of an official layout belong to a dataset: what its reader looks at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tasks.datasets.ade20k import AdeEntry
from tasks.datasets.catalogue import DatasetEntry
from tasks.datasets.class_folders import read_class_folders
from tasks.datasets.coco import CocoEntry, images_folder
from tasks.datasets.coco_format import read_coco_file
from tasks.datasets.davis import DavisEntry, read_davis
from tasks.datasets.files import file_names, require_text
from tasks.datasets.imagenet import ImageNetEntry
from tasks.datasets.packs.shards import LARGEST_FILE, PackedFile
from tasks.datasets.partimagenet import PartImageNetEntry
from tasks.datasets.revisitop import RevisitedEntry
from tasks.datasets.spair import SpairEntry, read_spair
from tasks.datasets.tree import read_tree
from tasks.datasets.voc import VocEntry, read_ids
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class Part:
    """Files of a dataset that are packed together.

    Attributes:
        name: Split, or ``files``.
        files: They, by sorted path.
        classes: Names of the classes of images that have labels.
    """

    name: str
    files: tuple[PackedFile, ...]
    classes: tuple[str, ...] = ()

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def parts_of(data: Path, entry: DatasetEntry) -> tuple[Part, ...]:
    """The files of a dataset that its reader looks at, as far as they are there.

    Args:
        data: Folder that holds the dataset's folder; no pack.
        entry: The dataset.

    Raises:
        InputError: A wrong layout, a file that is gone, or one that is too large.
    """
    if isinstance(entry, ImageNetEntry):
        return _class_parts(data, entry)
    paths = _paths(data / entry.folder, data, entry)
    return (
        Part("files", tuple(_sized(data, path.relative_to(data).as_posix()) for path in sorted({*paths}))),
    )


def _class_parts(data: Path, entry: ImageNetEntry) -> tuple[Part, ...]:
    """Both splits, images with their classes."""
    root = data / entry.folder
    classes = tuple(folder.name for folder in read_class_folders(root / "train"))
    labels = {name: label for label, name in enumerate(classes)}
    parts = []
    for split, called in (("train", "train"), ("val", "validation")):
        found = [
            _sized(data, f"{entry.folder}/{split}/{folder.name}/{file}", labels[folder.name])
            for folder in read_class_folders(root / split)
            for file in folder.files
        ]
        parts.append(Part(called, tuple(sorted(found, key=lambda file: file.path)), classes))
    return tuple(parts)


def _sized(data: Path, path: str, label: int | None = None) -> PackedFile:
    try:
        size = (data / require_text(path, f"names of files in {data}")).stat().st_size
    except OSError as error:
        raise InputError(f"cannot find {data / path}: {error.strerror}") from error
    if size > LARGEST_FILE:
        raise InputError(f"expected files of at most {LARGEST_FILE:,} bytes, found {size:,} in {data / path}")
    return PackedFile(path, size, label)


def _paths(root: Path, data: Path, entry: DatasetEntry) -> Iterable[Path]:
    """Paths of the files of a dataset without class folders, in any order."""
    match entry:
        case RevisitedEntry():
            return [root / f"gnd_{entry.folder}.pkl", *_in(root / "jpg", ".jpg")]
        case DavisEntry():
            return [root / entry.subset, *_sequences(root, data, entry)]
        case SpairEntry():
            return [*_in(root / "PairAnnotation" / entry.split, ".json"), *_pair_images(root, data, entry)]
        case VocEntry():
            return _voc(root, entry)
        case AdeEntry():
            splits = ("training", "validation")
            images = (path for split in splits for path in _in(root / "images" / split, ".jpg"))
            return [
                *images,
                *(path for split in splits for path in _in(root / "annotations" / split, ".png")),
            ]
        case CocoEntry():
            folder = images_folder(root, entry)
            listed = (folder / image.file_name for image in read_coco_file(root / entry.annotations).images)
            return [root / entry.annotations, *_there(listed)]
        case PartImageNetEntry():
            return _partitions(root, entry.splits)
        case _:
            raise TypeError(f"{entry.name} has class folders")


def _in(folder: Path, extension: str) -> list[Path]:
    return [folder / name for name in file_names(folder, (extension,))]


def _there(paths: Iterable[Path]) -> list[Path]:
    return [path for path in paths if path.is_file()]


def _sequences(root: Path, data: Path, entry: DavisEntry) -> list[Path]:
    """Frames and masks of the sequences that are there."""
    names = [video.name for video in read_davis(data, entry).videos]
    frames = [path for name in names for path in _in(root / "JPEGImages" / entry.resolution / name, ".jpg")]
    return frames + [
        path for name in names for path in _in(root / "Annotations" / entry.resolution / name, ".png")
    ]


def _pair_images(root: Path, data: Path, entry: SpairEntry) -> list[Path]:
    """Images of the pairs, and the annotations of single images that are there."""
    names = [sample.key for sample in read_spair(data, entry).samples]
    annotations = _there((root / "ImageAnnotation" / name).with_suffix(".json") for name in names)
    return [root / "JPEGImages" / name for name in names] + annotations


def _voc(root: Path, entry: VocEntry) -> list[Path]:
    """Lists, images and masks; of images and masks without the other, what is there."""
    lists = {split: root / "ImageSets" / "Segmentation" / f"{split}.txt" for split in (entry.train, "val")}
    masks = {entry.train: entry.train_masks, "val": "SegmentationClass"}
    found = [*lists.values()]
    for split, path in lists.items():
        ids = read_ids(path)
        found += _there(root / "JPEGImages" / f"{one}.jpg" for one in ids)
        found += _there(root / masks[split] / f"{one}.png" for one in ids)
    return found


def _partitions(root: Path, splits: Sequence[str]) -> list[Path]:
    """Annotations and images of the partitions that are there."""
    annotations = _there(root / f"{split}.json" for split in splits)
    folders = [path.with_suffix("") for path in annotations if path.with_suffix("").is_dir()]
    return annotations + [folder / name for folder in folders for name in read_tree(folder).images]
