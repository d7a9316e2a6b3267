"""What a dataset writer is, and how pictures and annotations reach the disk."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Note = Mapping[str, object]
"""Facts about an image for the annotation files; plain containers and numbers, so that it can be pickled."""

JPEG_QUALITY = 92


@dataclass(frozen=True, slots=True)
class Writer:
    """One dataset, in units that are rendered independently of each other.

    Attributes:
        name: Dataset name.
        images: Number of images of each unit.
        render: Writes the images of a unit under the root and returns what ``finish`` needs.
        finish: Writes the annotation files from all units' notes, in unit order.
    """

    name: str
    images: tuple[int, ...]
    render: Callable[[Path, int], list[Note]]
    finish: Callable[[Path, Sequence[Sequence[Note]]], None]


def save_jpeg(path: Path, pixels: NDArray[np.uint8]) -> None:
    """Write an RGB image, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, "JPEG", quality=JPEG_QUALITY)


def save_json(path: Path, content: Note) -> None:
    """Write a JSON file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def save_text(path: Path, lines: Sequence[str]) -> None:
    """Write lines, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def draw_size(rng: np.random.Generator, sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """A (width, height), drawn from several."""
    return sizes[int(rng.integers(len(sizes)))]
