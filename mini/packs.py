"""The datasets of the mini suite, which come with the package as a pack."""

from pathlib import Path

from PIL import Image

from layerboard.tasks.datasets.hub_spec import PREFIX
from layerboard.tasks.datasets.reading.files import data_root, file_paths, folder_names, open_image
from layerboard.zoo.errors import InputError

DATA = Path(__file__).parent / "data"  # folder of the pack


def packaged_data() -> Path:
    """The root of the pack; raises InputError: this installation lacks it, or it is damaged."""
    try:
        return data_root(Path(f"{PREFIX}{DATA}"))
    except InputError as error:
        problem = f"the mini suite's data cannot be read: {error}; install the package again"
        raise InputError(problem) from error


def packaged_pictures(count: int) -> list[Image.Image]:
    """Some RGB pictures of the mini suite, each of another class; raises InputError, as `packaged_data`."""
    images = packaged_data() / "imagenet" / "val"
    folders = [images / name for name in folder_names(images)[:count]]
    return [open_image(file_paths(folder, ".jpeg")[0]).convert("RGB") for folder in folders]
