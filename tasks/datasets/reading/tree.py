"""All images below a folder, at any depth."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from layerboard.tasks.datasets.reading.files import entries_of, readable
from layerboard.zoo.errors import InputError, counted, some
from layerboard.zoo.view.photos import ADDED, endings, heif_broken


@dataclass(frozen=True, slots=True)
class ImageTree:
    """The files below a folder, except hidden ones, as sorted relative paths with ``/``."""

    root: Path
    images: tuple[str, ...]  # files with image extensions (`endings`), case-insensitive
    others: tuple[str, ...]  # all other files, including broken links
    empty: tuple[str, ...]  # folders without a file or folder

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the numbers of ignored files, by extension, and folders; empty if there are none."""
        others = [path for path in self.others if _ending(path) not in _lacking()]
        empty = counted(len(self.empty), "empty folders")
        return (
            *([f"{counted(len(others), 'other files')} ignored ({_by_ending(others)})"] if others else []),
            *([f"{empty} ignored ({some(self.empty, 2)})"] if self.empty else []),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on images that are left out because their reader is not installed."""
        if not (unread := [path for path in self.others if _ending(path) in _lacking()]):
            return ()
        what = " ".join(sorted({f"'{ADDED[_ending(path)]}'" for path in unread}))
        how = heif_broken() or f"to have them read, pip install {what}"
        return (f"{counted(len(unread), 'images')} left out ({_by_ending(unread)}): {how}",)


def _lacking() -> set[str]:
    return {*ADDED} - {*endings()}


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _by_ending(paths: Iterable[str]) -> str:
    counts = Counter(_ending(path) or "without an ending" for path in sorted(paths, key=_ending))
    return some((f"{number:,} {ending}" for ending, number in counts.most_common()), 6)


def read_tree(root: Path) -> ImageTree:
    """The files below a folder; links to folders are followed; raises InputError."""
    paths: dict[str, list[str]] = {"images": [], "others": [], "empty": []}
    for kind, path in _paths(root, "", ()):
        paths[kind].append(path)
    return ImageTree(root, **{kind: tuple(sorted(listed)) for kind, listed in paths.items()})


def _paths(folder: Path, prefix: str, above: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Yields paths with their field of `ImageTree`; ``above`` are the folders that hold this one."""
    identity = Path(os.path.realpath(folder))
    if identity in above:
        raise InputError(
            f"expected folders that end, found the link {folder}, which leads back to a folder that holds "
            "it; remove it"
        )
    entries = entries_of(folder)
    if prefix and not entries:
        yield "empty", prefix
    for name, is_folder in entries.items():
        path = prefix + readable(name, folder)
        if is_folder:
            yield from _paths(folder / name, f"{path}/", (*above, identity))
        else:
            image = is_folder is False and name.lower().endswith(endings())
            yield "images" if image else "others", path
