"""What the views share: sizes, crops and their coordinates."""

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from zoo.view.geometry import Box


def to_tensor(image: Image.Image) -> Tensor:
    """uint8 [3 height width] of an RGB image, a copy."""
    return torch.from_numpy(np.array(image, dtype=np.uint8)).permute(2, 0, 1)


def nearest_multiple(length: float, multiple: int) -> int:
    """The positive multiple nearest to a length; halves go up."""
    return max(multiple, multiple * int(length / multiple + 0.5))


def crop_to_box(image: Image.Image, box: Box | None) -> Image.Image:
    """The part of an image inside a box, whose edges are rounded to pixels and clipped to the image."""
    if box is None:
        return image
    left, top = max(0, round(box[0])), max(0, round(box[1]))
    right, bottom = min(image.width, round(box[2])), min(image.height, round(box[3]))
    return image.crop((left, top, max(right, left + 1), max(bottom, top + 1)))


def cropped_size(size: tuple[int, int], box: Box | None) -> tuple[tuple[int, int], tuple[int, int]]:
    """Size of the cropped image and its upper left corner, by the rule of `crop_to_box`."""
    if box is None:
        return size, (0, 0)
    left, top = max(0, round(box[0])), max(0, round(box[1]))
    right, bottom = min(size[0], round(box[2])), min(size[1], round(box[3]))
    return (max(right, left + 1) - left, max(bottom, top + 1) - top), (left, top)


def resize_geometry(
    size: tuple[int, int],
    box: Box | None,
    resized: tuple[int, int],
    shift: tuple[int, int] = (0, 0),
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Scale and offset of crop, then resize, then shift by whole pixels."""
    (width, height), (left, top) = cropped_size(size, box)
    scale = resized[0] / width, resized[1] / height
    return scale, (shift[0] - left * scale[0], shift[1] - top * scale[1])
