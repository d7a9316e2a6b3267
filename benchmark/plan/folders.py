"""The folders that a run writes to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError

_WRITTEN = ("records", "items", "arrays", "examples", "thumbnails", "features", "tables", "report")


def require_writable(output: Path, cache: Path) -> None:
    """Create both folders, and remove leftovers of killed runs; raises InputError if one cannot be used.

    A cache that is there may be one that can only be read: a run that lacks nothing of it writes nothing.
    """
    for folder, option in ((output, "--output"), (cache, "--cache")):
        with _explained(folder, option):
            folder.mkdir(parents=True, exist_ok=True)
    require_writable_folder(output, "--output")
    remove_leftovers((*(output / name for name in _WRITTEN), cache / "features"))
    remove_leftovers([output], below=False)  # which may be a folder with much else


def require_writable_folder(folder: Path, option: str) -> None:
    """Raise InputError, with the option that names the folder, if no file can be written there."""
    with _explained(folder, option), TemporaryFile(dir=folder):
        pass


@contextmanager
def _explained(folder: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error
