"""The user's own images, wherever they are."""

from pathlib import Path

from tasks.datasets.folder import OwnImages, read_folder
from tasks.datasets.hub import read_hub_dataset
from tasks.datasets.hub_spec import PREFIX


def read_own(location: str, labels: Path | None = None) -> OwnImages:
    """A folder of images, or a dataset of the Hub or saved by ``datasets``.

    Args:
        location: Path of a folder, or ``hf:ID`` (`tasks.datasets.hub_spec`).
        labels: Table of the classes of a folder (`tasks.datasets.folder.read_folder`).

    Raises:
        InputError: It is not there, or cannot be read.
    """
    return read_hub_dataset(location) if location.startswith(PREFIX) else read_folder(Path(location), labels)
