"""Folders that a run writes into."""

import tempfile
from pathlib import Path

from zoo.errors import InputError


def require_writable(output: Path, cache: Path) -> None:
    """Raise InputError unless files can be written into both folders; missing ones are made."""
    for folder, option in ((output, "--output"), (cache, "--cache")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(f"{option} {folder} cannot be written to: {error.strerror}") from error
