"""The user's own images: class folders in any depth, tables of labels, or images without classes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

import numpy as np

from tasks.datasets.base import Count, Coverage, FileSample
from tasks.datasets.classes import (
    MADE,
    MADE_SPLIT,
    Classification,
    ClassImages,
    Unlabelled,
    class_labels,
    require_classes,
    require_known_classes,
    require_splittable,
    split_names,
)
from tasks.datasets.files import IMAGE_EXTENSIONS, require_directory, require_text, some
from tasks.datasets.labels import (
    METADATA,
    LabelledFile,
    LabelledFiles,
    find_metadata,
    match,
    read_label_table,
)
from tasks.datasets.tree import ImageTree, read_tree
from zoo.errors import InputError

OwnImages = Classification | Unlabelled

TRAIN = "train"
QUERY_SPLITS = ("val", "valid", "validation", "test")
"""Names of the split of queries beside ``train``, in order of preference, in any case of letters."""

SPLITS = (TRAIN, *QUERY_SPLITS)

NO_LABELS = Path("none")  # stands for a table of labels where folders are no classes
NO_CLASSES = "no classes: layers are described, not ranked"  # what is said of images without classes


def read_folder(folder: Path, labels: Path | None = None) -> OwnImages:
    """The user's own images as a dataset that is named after the folder; keys are paths relative to it.

    Classes come from ``labels``, else from a `METADATA` file inside, else from folders: the class of an
    image is the path of the folder that holds it, ``cat`` or ``animal/cat``, below ``train`` and ``val``
    where there is such a split. Images that lie in the folder itself, without a table, have no classes. Where
    there is no val, it is made of train (`split_names`).

    Args:
        folder: The folder.
        labels: A CSV or JSONL table; `NO_LABELS` where folders are no classes; None for none.

    Raises:
        InputError: No such folder, no image in it, or something else than one of these forms.
    """
    require_directory(folder, "a folder of images")
    name = require_text(folder.resolve().name, "the name of the folder of images")
    tree = read_tree(folder)
    if not tree.images:
        ignored = f" but {'; '.join(tree.remarks)}" if tree.others else ""
        raise InputError(
            f"expected images ({', '.join(IMAGE_EXTENSIONS)}) below {folder}, found none{ignored}"
        )
    if labels == NO_LABELS:
        return _unlabelled(name, tree)
    if tables := find_metadata(tree) if labels is None else [read_label_table(labels)]:
        inside = {table.path.resolve() for table in tables}
        root = tree.root.resolve()
        tree = replace(tree, others=tuple(path for path in tree.others if root / path not in inside))
        return _classes(name, tree, _in_split_folders(match(tables, tree)))
    loose = [path for path in tree.images if "/" not in path]
    if len(loose) == len(tree.images):
        return _unlabelled(name, tree)
    if loose:
        raise InputError(
            f"expected only class folders in {folder}, found {len(loose):,} images directly in it "
            f"({some(loose)}); move every image into a folder that is named after its class, or say the "
            "classes with --labels FILE.csv"
        )
    return _classes(name, tree, _class_folders(tree))


def _unlabelled(name: str, tree: ImageTree) -> Unlabelled:
    """All images of a folder, without classes."""
    samples = tuple(FileSample(path, f"{tree.root}/{path}") for path in tree.images)
    tables = [
        path for path in tree.others if path.endswith(".csv") and path not in METADATA and "/" not in path
    ]
    hint = tuple(f"--labels {tree.root / path} would take classes from that file" for path in tables[:1])
    remarks = (NO_CLASSES, *hint, *tree.remarks)
    return Unlabelled(name, samples, Coverage((Count("images", len(samples)),), remarks=remarks))


def _in_split_folders(labelled: LabelledFiles) -> LabelledFiles:
    """Images of a table that names no split, by the folders train and val in which all of them lie."""
    tops = {file.path.partition("/")[0].lower() for file in labelled.files}
    if any(file.split for file in labelled.files) or TRAIN not in tops or not tops <= {*SPLITS}:
        return labelled
    files = (replace(file, split=file.path.partition("/")[0].lower()) for file in labelled.files)
    return replace(labelled, files=tuple(files))


def _class_folders(tree: ImageTree) -> LabelledFiles:
    """The class of each image by the folder that holds it."""
    tops: dict[str, list[str]] = {}
    for path in tree.images:
        tops.setdefault(path.split("/", 1)[0], []).append(path)
    splits = _splits(tree.root, tops)
    files, left_out = [], []
    for top, paths in tops.items():
        if splits and top not in splits:
            left_out += paths
            continue
        for path in paths:
            label, _, name = path.removeprefix(f"{top}/" if splits else "").rpartition("/")
            files.append(LabelledFile(path, label, name, splits.get(top, "")))
    labels = {file.label for file in files}
    _require_leaves(tree.root, labels)
    remarks = ["classes from folders" + (", by their paths" if any("/" in label for label in labels) else "")]
    if left_out:
        remarks.append(f"{len(left_out):,} images beside train and val ignored ({some(left_out, 2)})")
    return LabelledFiles(tuple(files), tuple(remarks))


def _splits(root: Path, tops: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The split of each folder on top that is one; none where they are classes, one of them ``train`` even.

    Raises:
        InputError: It cannot be told which of the two they are.
    """
    named = {top: top.lower() for top in tops if top.lower() in SPLITS}
    direct = [top for top in named if all(path.count("/") == 1 for path in tops[top])]
    if TRAIN not in named.values():
        return {}
    if len({*named.values()}) < len(named):
        raise InputError(
            f"expected each split once in {root}, found {' and '.join(sorted(named))}; rename one"
        )
    if len(direct) == len(named):
        if len(named) == len(tops) > 1:
            raise InputError(
                f"expected class folders in {' and '.join(sorted(tops))} of {root}, found images directly in "
                "them; sort them into class folders, or say the classes with --labels FILE.csv"
            )
        return {}
    if direct:
        raise InputError(
            f"expected class folders in {root / direct[0]}, found images directly in it "
            f"({some(tops[direct[0]])}); move every image into a folder that is named after its class"
        )
    others = sorted(set(tops) - set(named))
    if others and len(named) == 1:
        raise InputError(
            f"expected a folder val or test beside {root / next(iter(named))}, or nothing, found "
            f"{some(others)}; rename train if it is a class"
        )
    return named


def _require_leaves(root: Path, labels: set[str]) -> None:
    """Raise InputError where a class folder lies in another one."""
    for label in sorted(labels):
        parents = PurePosixPath(label).parents
        above = next((str(parent) for parent in parents if str(parent).removeprefix(".") in labels), None)
        if label and above is not None:
            raise InputError(
                f"expected every folder of {root} to hold either images of one class or further folders, "
                f"found images in {above} and in {label}; move them, or say the classes with --labels FILE"
            )


def _classes(name: str, tree: ImageTree, labelled: LabelledFiles) -> Classification:
    """The dataset of images with classes, split as they say, or else by the hash of their names."""
    files = labelled.files
    named = {file.split for file in files}
    _require_splits(tree.root, named)
    classes = class_labels(file.label for file in files if file.split in ("", TRAIN))
    require_classes(len(classes), str(tree.root), "--labels none takes all images as ones without classes")
    queries = next((split for split in QUERY_SPLITS if split in named), "")
    remarks, notes = [*labelled.remarks], [*labelled.notes]
    if queries:
        train, val = ([file for file in files if file.split == split] for split in (TRAIN, queries))
        require_known_classes(classes, (file.label for file in val), f"{queries} of {tree.root}")
        further = len(files) - len(train) - len(val)
        remarks += [f"val is {queries}"] if queries != "val" else []
        notes += [f"{further:,} images of further splits left out"] if further else []
    else:
        train, val = _split(files, str(tree.root))
        remarks.append(MADE)
    counts = (
        Count("classes", len(classes)),
        Count("train images", len(train)),
        Count("val images", len(val)),
    )
    coverage = Coverage(counts, tuple(notes), (*remarks, *tree.remarks))
    bank, asked = (_images(part, classes, tree.root) for part in (train, val))
    return Classification(name, bank, asked, coverage, "train, val" if queries else MADE_SPLIT)


def _require_splits(root: Path, named: set[str]) -> None:
    """Raise InputError for a split of no known name, or queries without train."""
    unknown = sorted(repr(split) for split in named - {*SPLITS}) if named != {""} else []
    if unknown or (named != {""} and TRAIN not in named):
        what = some(unknown) or "no train"
        raise InputError(f"expected the splits of {root} to be {TRAIN} and {QUERY_SPLITS[0]}, found {what}")


def _split(files: Sequence[LabelledFile], where: str) -> tuple[list[LabelledFile], list[LabelledFile]]:
    """Bank and queries, class by class."""
    by_class: dict[str, dict[str, LabelledFile]] = {}
    for file in files:
        by_class.setdefault(file.label, {})[file.name] = file
    require_splittable({label: len(names) for label, names in by_class.items()}, where)
    sides: tuple[list[LabelledFile], list[LabelledFile]] = ([], [])
    for names in by_class.values():
        for side, chosen in zip(sides, split_names(names), strict=True):
            side += [names[name] for name in chosen]
    return sides


def _images(files: Sequence[LabelledFile], classes: Mapping[str, int], root: Path) -> ClassImages:
    """Images as samples, in the order of keys."""
    ordered = sorted(files, key=lambda file: file.path)
    samples = tuple(FileSample(file.path, f"{root}/{file.path}") for file in ordered)
    labels = np.array([classes[file.label] for file in ordered], dtype=np.int64)
    return ClassImages(samples, labels, tuple(classes))
