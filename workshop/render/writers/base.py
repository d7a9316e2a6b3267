"""Base class of dataset writers, masks as numbers, and writing of pictures and annotations."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from workshop.render.seeds import Rng

# Facts about an image for the annotation files; plain containers and numbers, so that it can be pickled.
Note = Mapping[str, Any]

JPEG_QUALITY = 92


@dataclass(frozen=True, slots=True)
class Writer:
    """One dataset, in units that are rendered independently of each other."""

    name: str
    images: tuple[int, ...]  # number of images of each unit
    # writes the images of a unit under the root and returns what ``finish`` needs
    render: Callable[[Path, int], list[Note]]
    # writes the annotation files from the notes of all units, in unit order
    finish: Callable[[Path, Sequence[Note]], None]


def save_jpeg(path: Path, pixels: NDArray[np.uint8]) -> None:
    """Write an RGB image, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, "JPEG", quality=JPEG_QUALITY)


def write_file(path: Path, content: bytes) -> None:
    """Write a file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def save_json(path: Path, content: Note) -> None:
    """Write a JSON file, folders included."""
    write_file(path, json.dumps(content).encode())


def save_text(path: Path, lines: Sequence[str]) -> None:
    """Write lines, folders included."""
    write_file(path, "".join(f"{line}\n" for line in lines).encode())


def draw_size(rng: Rng, sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """A (width, height), drawn from several."""
    return sizes[int(rng.integers(len(sizes)))]


Mask = NDArray[np.bool_]
Point = tuple[int, int]


def mask_box(mask: Mask) -> tuple[int, int, int, int]:
    """(left, top, right, bottom) in pixel edges of a mask that is not empty."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    return (int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)


def _run_lengths(mask: Mask) -> dict[str, list[int]]:
    """COCO's uncompressed counts: runs of zeros and ones in turn, column by column, zeros first."""
    flat = np.concatenate([[False], mask.ravel(order="F")])
    runs = np.diff(np.concatenate([[0], np.flatnonzero(flat[1:] != flat[:-1]), [mask.size]]))
    return {"counts": [int(run) for run in runs], "size": list(mask.shape)}


def outlines(mask: Mask) -> list[list[Point]]:
    """Closed outlines along pixel edges as (x, y) corners, with the mask on the right hand."""
    following: dict[Point, list[Point]] = {}
    for start, end in _edges(mask):
        following.setdefault(start, []).append(end)
    loops = []
    while following:
        first = next(iter(following))
        loop = [first]
        while len(loop) == 1 or loop[-1] != first:
            ends = following[loop[-1]]
            if len(ends) == 1:
                del following[loop[-1]]
            loop.append(ends.pop())
        loops.append(_corners(loop[:-1]))
    return loops


def _edges(mask: Mask) -> list[tuple[Point, Point]]:
    """Directed pixel edges between the mask and the rest."""
    padded = np.pad(mask, 1)
    inside = padded[1:-1, 1:-1]
    edges: list[tuple[Point, Point]] = []
    # For each neighbour: where it lies outside, and the edge's ends relative to the pixel's corner.
    for neighbour, (ax, ay), (bx, by) in (
        (padded[:-2, 1:-1], (0, 0), (1, 0)),
        (padded[1:-1, 2:], (1, 0), (1, 1)),
        (padded[2:, 1:-1], (1, 1), (0, 1)),
        (padded[1:-1, :-2], (0, 1), (0, 0)),
    ):
        for y, x in np.argwhere(inside & ~neighbour).tolist():
            edges.append(((x + ax, y + ay), (x + bx, y + by)))
    return edges


def _corners(loop: list[Point]) -> list[Point]:
    around = zip(loop[-1:] + loop[:-1], loop, loop[1:] + loop[:1], strict=True)
    return [at for before, at, after in around if before[0] != after[0] and before[1] != after[1]]


def _segmentation(mask: Mask) -> list[list[int]] | dict[str, list[int]]:
    """A mask in COCO's terms: polygons, or run lengths where it has holes, which polygons cannot have."""

    def area(loop: list[Point]) -> int:
        """Twice the area within an outline, negative around a hole (y is down)."""
        return sum(x * v - u * y for (x, y), (u, v) in zip(loop, loop[1:] + loop[:1], strict=True))

    loops = outlines(mask)
    if all(area(loop) > 0 for loop in loops):
        return [[value for point in loop for value in point] for loop in loops]
    return _run_lengths(mask)


def annotation(mask: Mask, category_id: int, *, crowd: bool = False) -> Note:
    """COCO fields of a region; crowds have run lengths."""
    left, top, right, bottom = mask_box(mask)
    return {
        "segmentation": _run_lengths(mask) if crowd else _segmentation(mask),
        "area": int(np.count_nonzero(mask)),
        "iscrowd": int(crowd),
        "bbox": [left, top, right - left, bottom - top],
        "category_id": category_id,
    }


def coco_fields(notes: Iterable[Note], first: int, step: int) -> dict[str, object]:
    """The images and numbered annotations of a COCO file from ``image`` and ``annotations`` of each note."""
    images, annotations = [], list[Note]()
    for note in notes:
        images.append(note["image"])
        for region in note["annotations"]:
            number = first + step * len(annotations)
            annotations.append({**region, "image_id": note["image"]["id"], "id": number})
    return {"images": images, "annotations": annotations}
