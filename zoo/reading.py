"""Reading files that others wrote: regular files of a bounded size, whose content fits a schema.

A pipe would be waited for, a device would be read until the memory ends. Both are errors of the operating
system here, so whoever reads says what is wrong in the sentence that it has for files that cannot be read.
"""

import errno
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Sequence
from io import BufferedReader
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from layerboard.zoo.errors import InputError, first_line, shortened

T = TypeVar("T")

MOST_BYTES = 2**31  # maximum size of a file that is read into memory as a whole
DEEPEST = 64  # maximum depth of values inside of values
_DEEP = "it is nested too deeply"
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")  # of the path of a value
_BOUND = re.compile(r"(Expected `\w+` (?:of length )?[<>]=? \S+)( - at `\$((?:\.\w+|\[\d+\])+)`)")


def require_regular(path: Path | str) -> int:
    """Size in bytes of a regular file, or of what a link leads to; raises OSError for anything else."""
    status = os.stat(path)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        what = "it is a pipe, a device or a socket; save it as a regular file"
        raise PermissionError(errno.EPERM, what, str(path))
    return status.st_size


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file, opened to be read; raises OSError for anything else."""
    require_regular(path)
    return Path(path).open("rb")


def read_regular(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file; raises OSError for anything else, or for more than ``most``."""
    if (size := require_regular(path)) > most:
        what = f"it has {size:,} bytes, of at most {most:,}"
        raise OSError(errno.EFBIG, what, str(path))
    return Path(path).read_bytes()


def read_as(
    kind: type[T],
    path: Path,
    remedy: str = "fetch it again",
    read: Callable[[Path], bytes] = read_regular,
    parse: Callable[[bytes], object] | None = None,
    syntax: str = "JSON",
) -> T:
    """The content of a JSON file, or of one that ``parse`` reads, as a ``kind`` (`decoded`).

    Raises InputError, which ends with the remedy, if it cannot be read, or is something else.
    """
    try:
        return decoded(kind, read(path), parse)
    except OSError as error:
        raise InputError(f"expected {syntax} in {path}, which cannot be read: {first_line(error)}") from error
    except ValueError as error:
        raise InputError(f"expected {syntax} in {path}, which is malformed ({error}); {remedy}") from error


def decoded(kind: type[T], content: bytes | str, parse: Callable[[Any], object] | None = None) -> T:
    """What some JSON says, as a ``kind``: a type of Python, a dataclass or a type of msgspec.

    Fields that a dataclass lacks are left out. Raises ValueError, whose phrase says what is wrong: the syntax
    (also for a key that comes twice), a field that is missing or of another type, or values that are nested
    deeper than `DEEPEST`.
    """
    try:
        parsed = (parse or _json)(content)
        require_modest([parsed] if isinstance(parsed, dict | list) else [], _inner)
    except RecursionError:
        raise ValueError(_DEEP) from None
    return converted(kind, parsed)


def converted(kind: type[T], content: object) -> T:
    """Mappings, lists, texts and numbers as a ``kind``; raises ValueError, as `decoded` does."""
    import msgspec  # only where a file is read

    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        said = _BOUND.sub(lambda match: _with_value(match, content), str(error))
        said = said.replace("`", "").replace("array", "list").replace(" - at ", ", at ")
        said = said.replace("at $.", "at ")
        raise ValueError(said[:1].lower() + said[1:]) from None


def _with_value(match: re.Match[str], content: Any) -> str:  # noqa: ANN401  # of JSON
    """What msgspec says of a value beyond a bound of its schema, with the value, which it leaves out."""
    bound, at, path = match.groups()
    for name, index in _STEP.findall(path):
        content = content[int(index) if index else name]
    return f"{bound}, found {shortened(content)}{at}"


def require_modest(level: Sequence[T], inner: Callable[[T], Iterable[T]], most: int = MOST_BYTES) -> None:
    """Raise ValueError if values hold others deeper than `DEEPEST`, or more than ``most`` in all.

    What several values share counts as often as it is there.
    """
    count = depth = 0
    while level:
        count, depth = count + len(level), depth + 1
        if depth > DEEPEST:
            raise ValueError(_DEEP)
        if count > most:
            raise ValueError(f"it has more than {most:,} values")
        level = [*islice(chain.from_iterable(map(inner, level)), most + 1)]


def _json(content: bytes | str) -> object:
    text = content if isinstance(content, str) else content.decode(json.detect_encoding(content))
    return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=unique)


def unique(pairs: Sequence[tuple[Any, object]]) -> dict[Any, object]:
    """The mapping of pairs of keys and values; raises ValueError for a key that comes twice."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {shortened(next(key for key in keys if keys.count(key) > 1))} comes twice")
    return mapping


def _inner(container: Any) -> Iterable[Any]:  # noqa: ANN401  # a mapping or a list of JSON
    """The mappings and lists in a mapping or list."""
    values = container.values() if isinstance(container, dict) else container
    return (each for each in values if isinstance(each, dict | list))
