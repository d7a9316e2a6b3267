"""Positions of points, and searched positions, in a rule of keypoint correspondence."""

import numpy as np
import torch

from layerboard.tasks.keypoints.config import KeypointConfig
from layerboard.tasks.keypoints.correspondence import Axis
from layerboard.tasks.metrics import bilinear
from layerboard.tasks.metrics.arrays import Floats
from layerboard.tasks.metrics.bilinear import Places, official_pixels
from layerboard.zoo.view.geometry import Geometry
from layerboard.zoo.view.released import CornerSquare
from layerboard.zoo.view.views import View

Size = tuple[int, int]  # height and width of a grid of tokens


def point_geometry(view: View, size: tuple[int, int]) -> Geometry:
    """Coordinate map of points: that of the view, unless its authors used another one."""
    return view.stated(size) if isinstance(view, CornerSquare) else view.geometry(size)


def source_places(config: KeypointConfig, points: Floats, seen: Geometry, size: Size) -> Places:
    """Sampling positions, on a grid of tokens, of points [n 2] annotated in pixels of the image."""
    side = seen.size[0]
    points_shown = torch.from_numpy(_shown(config, points, seen))
    if config.source == "bilinear":
        return bilinear.point_places(points_shown, size, side / size[0])
    if config.source == "corners":
        return bilinear.aligned_places(points_shown, size, side)
    cells = points_shown * size[1] / side
    token = cells.floor() if config.source == "token below" else cells.round()
    most = torch.tensor([size[1] - 1, size[0] - 1], dtype=torch.float64)
    return bilinear.point_places(torch.minimum(token.clamp_min(0), most) + 0.5, size, 1.0)


def searched_area(config: KeypointConfig, image: tuple[int, int], seen: Geometry, size: Size) -> Places:
    """Searched pixels of an image of that (width, height), on its grid of tokens."""
    if config.search == "all pixels":
        return bilinear.image_places(seen.size, size)
    if config.search != "image pixels":
        return bilinear.searched_places(seen.size[0], size, seen.content)
    across, down = (
        ((torch.arange(image[axis], dtype=torch.float64) + 0.5) * seen.scale[axis] + seen.offset[axis])
        / (seen.size[axis] / size[1 - axis])
        for axis in (0, 1)
    )
    return bilinear.area_places(across, down, size)


def true_places(config: KeypointConfig, points: Floats, seen: Geometry) -> tuple[Floats, Floats]:
    """Positions of true points, annotated in pixels of the image, in the view and the image: [n 2] each."""
    if config.points == "truncated":
        in_view = np.trunc(seen.to_view(points))
        return in_view, seen.to_image(in_view)
    there = np.trunc(points) if config.points == "image pixel" else points
    return seen.to_view(there), there


def predicted_offset(config: KeypointConfig, cell: float) -> float:
    """Pixels from the upper left corner of a cell of ``cell`` pixels to its predicted position."""
    return {"centre": cell / 2, "corner": 0.0, "middle pixel": cell / 2 - 0.5}[config.said]


def predictable_axes(
    config: KeypointConfig, image: tuple[int, int], seen: Geometry, size: Size
) -> tuple[Axis, Axis]:
    """Columns and rows, in pixels, that a rule can predict in an image of that (width, height)."""
    axes = []
    for axis in (0, 1):
        start, stop, cell = 0, size[1 - axis], seen.size[axis] / size[1 - axis]
        scale, offset = seen.scale[axis], seen.offset[axis]
        if config.in_image:
            start, stop, cell, scale, offset = 0, image[axis], 1.0, 1.0, 0.0
        elif config.upsampled:
            content = (0.0, float(seen.size[axis]))
            if config.search == "pixels":
                content = seen.content[axis], seen.content[axis + 2]
            pixels = bilinear.searched_pixels(*content, seen.size[axis])
            start, stop, cell = pixels.start, pixels.stop, 1.0
        first = start * cell + predicted_offset(config, cell)
        axes.append(Axis((first - offset) / scale, cell / scale, stop - start, config.soft is not None))
    return axes[0], axes[1]


def _shown(config: KeypointConfig, points: Floats, seen: Geometry) -> Floats:
    if config.points == "view pixel":
        # float32 after each step, as in the published code
        scale, offset = (np.asarray(numbers, np.float32) for numbers in (seen.scale, seen.offset))
        pixels = torch.from_numpy(points.astype(np.float32) * scale + offset).clamp(0, seen.size[0] - 1)
        return np.asarray(official_pixels(pixels).numpy().astype(np.float64) + 0.5)
    if config.points == "truncated":
        return np.trunc(seen.to_view(points))
    return seen.to_view(np.trunc(points) + 0.5 if config.points == "image pixel" else points)
