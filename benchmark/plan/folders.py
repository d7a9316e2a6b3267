"""The folders that a run writes to."""

from pathlib import Path
from tempfile import TemporaryFile

from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError

_WRITTEN = ("records", "items", "arrays", "examples", "thumbnails", "features", "tables", "report")


def require_writable(output: Path, cache: Path) -> None:
    """Create both folders, and remove leftovers of killed runs; raises InputError if one cannot be used.

    A cache that is there may be one that can only be read: a run that lacks nothing of it writes nothing.
    """
    _make(output, "--output")
    _make(cache, "--cache")
    require_writable_folder(output, "--output")
    remove_leftovers((*(output / name for name in _WRITTEN), cache / "features"))
    remove_leftovers([output], below=False)  # which may be a folder with much else


def _make(folder: Path, option: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, option, error) from error


def require_writable_folder(folder: Path, option: str) -> None:
    """Raise InputError, with the option that names the folder, if no file can be written there."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise _unwritable(folder, option, error) from error


def _unwritable(folder: Path, option: str, error: OSError) -> InputError:
    return InputError(f"{option} {folder} cannot be written to: {error.strerror}")
