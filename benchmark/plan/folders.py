"""Folders that a run writes into."""

import tempfile
from pathlib import Path

from zoo.atomic import remove_leftovers
from zoo.errors import InputError


def require_writable(output: Path, cache: Path) -> None:
    """Raise InputError unless files can be written into both folders; missing ones are made.

    What killed runs left there half written is removed.
    """
    for folder, option in ((output, "--output"), (cache, "--cache")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error
    written = (
        output / "records",
        output / "items",
        output / "features",
        output / "tables",
        cache / "features",
        cache / "mini-data",
    )
    remove_leftovers(written)
