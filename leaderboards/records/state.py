"""Whether anything has changed of what is read of an output folder, by the content of files.

Imports no pandas.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from stat import S_ISREG

from layerboard.leaderboards.records.files import NEAR_DUPLICATES, VERSION, version_of
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.reading import read_regular

READ = ("records", "items", "arrays", "examples", NEAR_DUPLICATES)  # of an output folder, by pages and `show`
LIBRARIES = ("numpy", "pandas", "pyarrow", "scipy", "tabulate", "vl-convert-python")  # that write pages
PACKAGE = Path(__file__).parents[2]  # code and data; in a checkout it has links to the rooms
SHOWN = Path("tables", ".shown.json")  # in the output folder

LARGEST = 2**21  # bytes of a file that is read to know its state

# By path the digest of a file's content, or of a large one what the system says: size, times and inode.
Stamps = dict[str, list[int] | str]


def state_of(output: Path) -> str:
    """Digest of the state of all that pages and `show` are made of: results, this package and libraries.

    Contents of files count, not their times, which archives and people set as they like; but of large files
    the time of their last change, which nobody can set.
    """
    read = (stamps_of(folder, _files(folder)) for folder in (output / name for name in READ))
    facts = (sys.version, VERSION, *map(version_of, LIBRARIES), _code(PACKAGE), *read)
    return hashlib.blake2b(repr(facts).encode(errors="surrogateescape"), digest_size=16).hexdigest()


@cache
def _code(package: Path) -> dict[str, list[int]]:
    """Times of the files of a package, read once: code that a process has imported stays as it was."""
    return {name: _times(package / name) for name in _files(package)}  # of one version, but for who edits it


def read_shown(output: Path, state: str, screen: int) -> dict[str, str]:
    """The texts by suite that were kept in that state for a screen of that width; none if others were.

    Those that came with a folder are not read, as anybody may have written them.
    """
    try:
        known = json.loads(read_regular(output / SHOWN))
        same = (known["state"], known["screen"], known["place"]) == (state, screen, _place(output))
        return {str(suite): str(text) for suite, text in known["suites"].items()} if same else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def keep_shown(output: Path, state: str, screen: int, suites: Mapping[str, str]) -> None:
    """Keep the texts that show the best of every suite of a folder beside its pages, if it has any.

    ``state`` is that of the folder before its results were read.
    """
    if (output / SHOWN).parent.is_dir():
        content = {"state": state, "screen": screen, "place": _place(output), "suites": dict(suites)}
        with suppress(OSError):  # what can only be read is read again
            write_whole(output / SHOWN, json.dumps(content, indent=1) + "\n")


def _place(output: Path) -> list[object]:
    """What the folder of the pages is to this machine; a copy of it, here or elsewhere, is another one."""
    status = (output / SHOWN).parent.stat()
    return [platform.node(), status.st_dev, status.st_ino]


def _files(folder: Path) -> Iterator[str]:
    """Paths of all files below a folder, in order, without compiled code; "" for what is a file itself."""
    yield ""
    for top, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted({*folders} - {"__pycache__"})
        yield from (os.path.relpath(os.path.join(top, name), folder) for name in sorted(names))


def stamps_of(folder: Path, names: Iterable[str]) -> Stamps:
    """The state of files of a folder; an empty one for those that are not there."""
    return {name: _stamp(folder / name) for name in names}


def _stamp(path: Path) -> list[int] | str:
    times = _times(path)
    try:
        if times and times[0] <= LARGEST:
            return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
        return times and [*times, path.stat().st_ctime_ns, path.stat().st_ino]
    except OSError:
        return []


def _times(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns] if S_ISREG(status.st_mode) else []
