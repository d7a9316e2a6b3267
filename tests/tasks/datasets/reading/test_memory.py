"""Datasets in memory as folders: images of every kind, labels, splits, and what is refused."""

import re
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset, TensorDataset

from layerboard.tasks.datasets.base import Data
from layerboard.tasks.datasets.catalogue import read_own
from layerboard.tasks.datasets.classes import Unlabelled
from layerboard.tasks.datasets.reading.memory import stored
from layerboard.zoo.errors import InputError

NAMES = ("oak", "elm")
COUNT = 8


def arrays() -> list[np.ndarray[Any, Any]]:
    return [*np.random.default_rng(0).integers(0, 256, (COUNT, 6, 5, 3), np.uint8)]


class Photos(Dataset[Any]):
    """As torchvision's datasets are: an image and the number of its class, whose names are an attribute."""

    classes = NAMES

    def __init__(self, make: Callable[[np.ndarray[Any, Any]], object]) -> None:
        self.make = make

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> tuple[object, int]:
        if index >= COUNT:
            raise IndexError
        return self.make(arrays()[index]), index % 2


def tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.from_numpy(array.copy()).permute(2, 0, 1)


def png(array: np.ndarray[Any, Any]) -> bytes:
    buffer = BytesIO()
    Image.fromarray(array).save(buffer, "png")
    return buffer.getvalue()


def table() -> datasets.Dataset:
    features = datasets.Features({"photo": datasets.Image(), "kind": datasets.ClassLabel(names=[*NAMES])})
    rows = {"photo": [Image.fromarray(each) for each in arrays()], "kind": [n % 2 for n in range(COUNT)]}
    return datasets.Dataset.from_dict(rows, features=features)


def read(images: object, cache: Path) -> Data:
    return read_own(str(stored(images, cache)))


def pixels_of(data: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(sample.open()) for sample in data.train.samples]


KINDS: dict[str, Callable[[np.ndarray[Any, Any]], object]] = {
    "Pillow": Image.fromarray,
    "array": lambda array: array,
    "tensor": tensor,
    "tensor of floats": lambda array: tensor(array).float() / 255,
    "bytes": png,
}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_images_of_every_kind_keep_their_pixels_and_classes(
    make: Callable[[np.ndarray[Any, Any]], object], tmp_path: Path
) -> None:
    folders = {stored(Photos(make), tmp_path)}
    pairs = [(make(each), NAMES[number % 2]) for number, each in enumerate(arrays())]
    folders |= {stored(pairs, tmp_path), stored(iter(pairs), tmp_path)}
    folders |= {stored([{"image": image, "label": label} for image, label in pairs], tmp_path)}
    (folder,) = folders  # the same content is the same folder
    data: Any = read_own(str(folder))
    assert data.name == "memory"
    assert data.train.classes == tuple(sorted(NAMES))
    assert [data.train.classes[label] for label in data.train.labels] == [pair[1] for pair in pairs]
    assert all(map(np.array_equal, pixels_of(data), arrays()))


def test_tables_of_datasets_and_splits(tmp_path: Path) -> None:
    whole: Any = read(table(), tmp_path)
    assert all(map(np.array_equal, pixels_of(whole), arrays()))
    assert whole.train.classes == tuple(sorted(NAMES))
    parts = {"train": table().select(range(6)), "test": table().select(range(6, 8))}
    data: Any = read(datasets.DatasetDict(parts), tmp_path)
    assert (len(data.train.samples), len(data.val.samples)) == (6, 2)
    both = {"train": Subset(Photos(tensor), range(6)), "validation": Subset(Photos(tensor), [6, 7])}
    again: Any = read(both, tmp_path)
    assert again.val.labels.tolist() == data.val.labels.tolist()


def test_numbers_lists_of_classes_and_no_labels(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 256, (30, 6, 5), np.uint8)
    numbers = read([(image, number / 4) for number, image in enumerate(images)], tmp_path)
    assert numbers.role == "numbers"
    labels = read([(image, [*"abc"][: 1 + n % 3]) for n, image in enumerate(images)], tmp_path)
    assert labels.role == "labels"
    assert isinstance(read(images, tmp_path), Unlabelled)
    assert stored(images, tmp_path) == stored(list(images), tmp_path)
    data: Any = read(TensorDataset(torch.from_numpy(images)[:, None], torch.arange(30) % 2), tmp_path)
    assert data.train.classes == ("0", "1")


def two_columns() -> datasets.Dataset:
    features = datasets.Features({name: datasets.Image() for name in ("before", "after")})
    image = [Image.new("RGB", (4, 4))]
    return datasets.Dataset.from_dict({"before": image, "after": image}, features=features)


class Broken(Dataset[Any]):
    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> object:
        raise OSError("the disk is gone")


def many() -> Iterator[object]:
    yield Image.new("RGB", (4, 4))
    yield "no image"


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ([1], "item 0: expected images of Pillow"),
        ([(torch.randn(3, 4, 4), 1)], "a tensor of values outside 0..1; give the images before"),
        ([np.zeros((4, 4, 3))], "found float64 [4, 4, 3]"),
        ([np.zeros((4, 4, 5), np.uint8)], "found uint8 [4, 4, 5]"),
        ([b"text"], "item 0: cannot identify image file"),
        (many(), "item 1, no image: "),
        ([{"picture": 1}], "found a NoneType"),
        ([], "expected at least one image"),
        (Broken(), "the disk is gone"),
        (two_columns(), "expected one column of images in the dataset"),
    ],
)
def test_what_is_no_image_is_refused_in_a_sentence(images: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        stored(images, tmp_path)
    assert [*(tmp_path / "images").iterdir()] == []
