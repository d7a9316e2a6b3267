"""All images below a folder, at any depth."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from layerboard.tasks.datasets.integrity import Coverage
from layerboard.tasks.datasets.reading.files import entries_of, readable
from layerboard.zoo.errors import InputError, counted, some
from layerboard.zoo.view.photos import ADDED, endings, heif_broken

# words beside the name of an image in that of its mask, such as 0_mask.png, 0.seg.png and mask_0.png
_WORDS = (
    r"(?:mask|seg|segm|segment|segmentation|label|labelid|labelmap|gt|gtfine|ground[ _-]?truth|anno|"
    r"annotation|instance|instanceid|semantic|panoptic|trimap|matte|alpha|binary|pixel|depth)s?"
)
_LAST = re.compile(rf"(?:[ ._-]+{_WORDS})+(?:[ ._-]+colou?r)?[ ._-]?\d{{0,3}}$")
_FIRST = re.compile(rf"(^|/){_WORDS}[ ._-]+(?=[^/]+$)")
_IMAGE = re.compile(r"[ ._-]+(?:image|img|rgb|sat|photo|leftimg8bit|original|orig)$")  # in that of an image


@dataclass(frozen=True, slots=True)
class ImageTree:
    """The files below a folder, except hidden ones, as sorted relative paths with ``/``."""

    root: Path
    images: tuple[str, ...]  # files with image extensions (`endings`), case-insensitive
    others: tuple[str, ...]  # all other files, including broken links
    empty: tuple[str, ...]  # folders without a file or folder

    @property
    def broken(self) -> tuple[str, ...]:
        """Names of images that are no files: links to files that do not exist, pipes and devices."""
        return tuple(path for path in self.others if path.lower().endswith(endings()))

    @property
    def twins(self) -> tuple[tuple[str, str], ...]:
        """Images with the name of another one beside them, but for a suffix of masks or the ending.

        Each with that other one, such as ``cat/0_mask.png`` with ``cat/0.jpg``.
        """
        first = dict[str, str]()
        for path in self.images:
            first.setdefault(_IMAGE.sub("", _stem(path)), path)
        named = ((path, _FIRST.sub(r"\1", _LAST.sub("", _stem(path)))) for path in self.images)
        twins = ((path, first.get(stem, path)) for path, stem in named)
        return tuple((path, other) for path, other in twins if path != other)

    @property
    def coverage(self) -> Coverage:
        """Remarks on ignored files and folders, and notes on images that are left out or may be masks."""
        return Coverage(notes=self.notes, remarks=self.remarks)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on the numbers of ignored files, by extension, and folders; empty if there are none."""
        broken = {*self.broken}
        others = [path for path in self.others if _ending(path) not in _lacking() and path not in broken]
        empty = counted(len(self.empty), "empty folders")
        return (
            *([f"{counted(len(others), 'other files')} ignored ({_by_ending(others)})"] if others else []),
            *([f"{empty} ignored ({some(self.empty, 2)})"] if self.empty else []),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on images that are left out: their reader is not installed, or their file is not there."""
        doubtful: tuple[tuple[Sequence[object], str], ...] = (
            (self.broken, f"left out, which are links to files that do not exist ({some(self.broken)})"),
            (self.twins, f"named as another one beside them ({some(map(' and '.join, self.twins))})"),
        )
        notes = [f"{counted(len(each), 'images')} {words}" for each, words in doubtful if each]
        if not (unread := [path for path in self.others if _ending(path) in _lacking()]):
            return (*notes,)
        what = " ".join(sorted({f"'{ADDED[_ending(path)]}'" for path in unread}))
        how = heif_broken() or f"to have them read, pip install {what}"
        return (f"{counted(len(unread), 'images')} left out ({_by_ending(unread)}): {how}", *notes)


def _stem(path: str) -> str:
    """A path without its ending, in lower case."""
    return path.lower().removesuffix(_ending(path))


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
