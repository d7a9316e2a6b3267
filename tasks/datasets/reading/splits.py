"""Which folders of images are splits, and folders that repeat each other's class names."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from layerboard.tasks.datasets.integrity import mismatch, require, require_no
from layerboard.tasks.datasets.reading.names import normal
from layerboard.zoo.errors import some

TRAIN = "train"
QUERY_SPLITS = ("val", "valid", "validation", "dev", "eval", "holdout", "test")  # in order of preference
SPLITS = (TRAIN, *QUERY_SPLITS)
_WORDS = {split: split for split in SPLITS} | {
    "training": TRAIN,
    "trainval": TRAIN,
    "development": "dev",
    "devel": "dev",
    "evaluation": "eval",
    "testing": "test",
}
_FILLING = {
    *("set", "sets", "data", "dataset", "split", "folder", "dir"),
    *("image", "images", "img", "imgs", "photo", "photos", "picture", "pictures"),
}


def split_of(name: str) -> str:
    """The split that a name says, such as ``test`` for ``Testing_Set`` and ``test2017``; "" for any other."""
    return _WORDS.get("".join(word for word in _words(name) if word not in _FILLING), "")


def _words(name: str) -> list[str]:
    """Words of a name in lower case, without numbers; ``trainset`` and ``TrainSet`` are two words."""
    parts = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[^\W\d_A-Za-z]+", name)
    words = (part.lower() for part in parts)
    return [piece for word in words for piece in re.sub(r"(?<=.)(set|data)$", r" \1", word).split()]


def split_within(name: str) -> str:
    """The split that one word of a name says, such as ``train`` for ``flowers-train``; "" for any other."""
    splits = {_WORDS[word] for word in _words(name) if word in _WORDS}
    return splits.pop() if len(splits) == 1 else ""


def find_splits(root: Path, images: Sequence[str]) -> dict[str, str]:
    """The split of each folder that is one, by its path, such as ``images/train/``; empty without splits.

    ``images`` are sorted paths below ``root``. The folders of splits are at the top, or below folders that
    hold nothing else; one that holds only a folder of its own name or split is that. Raises InputError.
    """
    prefix = ""
    while True:
        tops = defaultdict[str, list[str]](list)
        for path in images:
            top, below, rest = path.removeprefix(prefix).partition("/")
            if not below:  # an image beside the folders
                return {}
            tops[top].append(rest)
        inner = {top: _inner(top, paths) for top, paths in tops.items()}
        below_inner = {top: [path.removeprefix(inner[top]) for path in paths] for top, paths in tops.items()}
        if splits := _splits(root / prefix, below_inner, at_top=not prefix):
            return {f"{prefix}{top}/{inner[top]}": split for top, split in splits.items()}
        if len(tops) > 1:
            return {}
        prefix += f"{next(iter(tops))}/"


def _inner(top: str, paths: Sequence[str]) -> str:
    """The only folder in a folder if its name says the same, such as ``train/``; "" if there is none."""
    name, below, _ = paths[0].partition("/")
    same = name == top or (split_of(name) and split_of(name) == split_of(top))
    return f"{name}/" if below and same and all(path.startswith(f"{name}/") for path in paths) else ""


def _splits(root: Path, tops: Mapping[str, Sequence[str]], *, at_top: bool) -> dict[str, str]:
    """The split of each of some folders, given with the paths below them; raises InputError."""
    named = {top: split for top in tops if (split := split_of(top))}
    others = sorted({*tops} - {*named})
    if TRAIN not in named.values():
        named = {top: split for top in tops if (split := split_of(top) or split_within(top))}
        return _of_common_classes(root, named, tops) if len(named) == len(tops) else {}
    if others and not (at_top and TRAIN in map(str.lower, named)):  # the words of splits may be classes, too
        return _of_common_classes(root, named, tops)
    direct = [top for top in named if not any("/" in path for path in tops[top])]
    if len(direct) == len(named):
        folders = f"class folders in {' and '.join(sorted(tops))} of {root}"
        remedy = "sort them into class folders, or give the classes by --labels FILE.csv"
        require(others or len(named) < 2, folders, "images directly in them", remedy)
        return {}
    _require_single(root, named)
    if direct:
        images = f"images directly in it ({some(tops[direct[0]])})"
        remedy = "move every image into a folder that is named after its class"
        raise mismatch(f"class folders in {root / direct[0]}", images, remedy)
    beside = f"a folder val or test beside {root / next(iter(named))}, or nothing"
    require_no(others if len(named) == 1 else (), beside, "rename train if it is a class")
    return named


def _of_common_classes(
    root: Path, named: Mapping[str, str], tops: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """The folders with words of splits if they are train and others with classes of train, else none."""
    classes = {top: {_folded(path.rpartition("/")[0]) for path in tops[top]} - {""} for top in named}
    train = {each for top, split in named.items() if split == TRAIN for each in classes[top]}
    if len({*named.values()}) < 2 or not all(train & each for each in classes.values()):
        return {}
    _require_single(root, named)
    return {**named}


def _require_single(root: Path, named: Mapping[str, str]) -> None:
    twice = sorted(top for top, split in named.items() if [*named.values()].count(split) > 1)
    require(not twice, f"each split once in {root}", " and ".join(twice), "rename one")


def require_own_classes(root: Path, labels: Collection[str]) -> list[str]:
    """Remarks on class names in several folders, and on ones that say splits, from paths of class folders.

    Raises InputError for sibling folders that hold the same class names, if these are at least half of the
    folders beside each other: they are splits or sources, and each class would count several times.
    """
    _require_no_repetition(root, labels)
    holders = defaultdict[str, set[str]](set)
    for label in labels:
        above, _, name = label.rpartition("/")
        holders[_folded(name)].add(above or ".")
    shared = sorted((name, sorted(above)) for name, above in holders.items() if len(above) > 1)
    several = [f"{name} in {' and '.join(above[:2])}" for name, above in shared]
    apart = f"classes of one name in several folders are told apart ({some(several, 2)})"
    remarks = [apart] if several else []
    said = {split_within(label.rpartition("/")[2]) for label in labels}
    if TRAIN in said and len(said) > 1 and "" not in said:
        remedy = "move them into folders train and val if they are"
        remarks.append(f"every class says a split ({some(sorted(labels), 4)}): {remedy}")
    return remarks


def _require_no_repetition(root: Path, labels: Collection[str]) -> None:
    """Raise InputError if folders beside each other, half of them or more, hold the same class names."""
    below: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for label in labels:
        parts = label.split("/")
        for depth, part in enumerate(parts):
            below["/".join(parts[:depth])][part].add(_folded("/".join(parts[depth + 1 :])))
    for parent, children in sorted(below.items()):
        nested = {child: classes - {""} for child, classes in children.items() if classes != {""}}
        if not (pairs := _repeated(nested)):
            continue
        if 2 * len({child for pair in pairs for child in pair}) >= len(children):
            first, second = pairs[0]
            same = sorted(nested[first] & nested[second])
            where = root / parent if parent else root
            example = f" (such as --images {where / first})" if (where / first).is_dir() else ""
            raise mismatch(
                f"folders of different class names in {where}",
                f"{first} and {second}, which both hold {some(same)}",
                f"rename them train and val if they are splits, give one of them alone{example}, or say the "
                "class of each image by --labels FILE.csv",
            )


def _repeated(folders: Mapping[str, set[str]]) -> list[tuple[str, str]]:
    """Pairs of folders, by name, that hold the same class names: all, or at least two and most of the fewer.

    ``folders`` has the class names of each. Pairs, and the folders of each, are in order.
    """
    same = defaultdict[frozenset[str], list[str]](list)
    for folder in sorted(folders):
        same[frozenset(folders[folder])].append(folder)
    pairs = [(equal[0], other) for equal in same.values() for other in equal[1:]]
    holders = defaultdict[str, list[frozenset[str]]](list)
    for classes in same:
        for name in classes:
            holders[name].append(classes)
    near = {pair for each in holders.values() for pair in combinations(each, 2)}
    for first, second in near:
        common = len(first & second)
        if common > 1 and 2 * common > min(len(first), len(second)):
            pairs.append((same[first][0], same[second][0]))
    return sorted(pairs)


def _folded(name: str) -> str:
    return normal(name).casefold()
