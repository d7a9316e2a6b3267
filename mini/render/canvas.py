"""A canvas that shapes are painted on, with the owner of every pixel."""

from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from mini.render.individual import Material
from mini.render.lighting import Light, brightness
from mini.render.shapes import Affine, Field, Shape, clamp
from mini.render.textures import pattern

Owner = tuple[int, int]  # whom a shape belongs to: figure number from 1, and part number from 1 within it
NOBODY: Owner = (0, 0)  # owner of the background and of occluders


class Canvas:
    """Pixels and owners while a scene is painted, back to front.

    Attributes:
        pixels: Mix of sRGB values, float32 [3 height width]: planes make numpy's inner loops long.
        figures: Figure number of the topmost shape, int16 [height width].
        parts: Its part number, int16 [height width].
        coverage: Opacity of what was painted since ``start_layer``, float32 [height width].
    """

    def __init__(self, backdrop: Field) -> None:
        self.pixels = backdrop.copy()
        self.figures: NDArray[np.int16] = np.zeros(backdrop.shape[1:], np.int16)
        self.parts: NDArray[np.int16] = np.zeros(backdrop.shape[1:], np.int16)
        self.coverage: Field = np.zeros(backdrop.shape[1:], np.float32)

    def start_layer(self) -> None:
        """Forget the coverage so far."""
        self.coverage = np.zeros_like(self.coverage)

    def paint(
        self, shape: Shape, frame: Affine, material: Material, light: Light, owner: Owner, shade: float = 1.0
    ) -> None:
        """Paint a shape through the map of its coordinates to the image."""
        height, width = self.figures.shape
        box = frame.bounds(shape.bounds())
        left, top = max(0, floor(box[0] - 1)), max(0, floor(box[1] - 1))
        right, bottom = min(width, ceil(box[2] + 1)), min(height, ceil(box[3] + 1))
        if left >= right or top >= bottom:
            return
        window = np.s_[top:bottom, left:right]
        u, v = _local(frame, (left, top, right, bottom))
        surface = shape.surface(u, v)
        scale = frame.scale
        edge = np.float32(scale) * surface.distance
        alpha = clamp(np.float32(0.5) - edge, 0, 1)
        a, b, c, d = (np.float32(value / scale) for value in (frame.a, frame.b, frame.c, frame.d))
        x, y = surface.tilt_x, surface.tilt_y
        bright = brightness(light, a * x + b * y, c * x + d * y) * np.float32(shade)
        # A darker rim of about a pixel keeps parts of one colour apart, as their crevices would.
        bright *= np.float32(1) - np.float32(0.3) * clamp(edge * np.float32(0.6) + 1, 0, 1)
        below = self.pixels[:, *window]
        below += alpha * (_colours(material, u, v, bright, scale) - below)
        solid = alpha >= np.float32(0.5)
        np.copyto(self.figures[window], np.int16(owner[0]), where=solid)
        np.copyto(self.parts[window], np.int16(owner[1]), where=solid)
        np.maximum(self.coverage[window], alpha, out=self.coverage[window])


def _local(frame: Affine, box: tuple[int, int, int, int]) -> tuple[Field, Field]:
    """Coordinates of the pixel centres of a box in a shape's frame, each [height width]."""
    left, top, right, bottom = box
    back = frame.inverse()
    x = np.arange(left, right) + 0.5
    y = (np.arange(top, bottom) + 0.5)[:, None]
    u = (back.a * x + back.x).astype(np.float32) + (back.b * y).astype(np.float32)
    v = (back.c * x + back.y).astype(np.float32) + (back.d * y).astype(np.float32)
    return u, v


def _colours(material: Material, u: Field, v: Field, bright: Field, scale: float) -> Field:
    """Lit colours, [3 height width]."""
    base = np.array(material.colour, np.float32)[:, None, None]
    colours: Field
    if material.texture.kind == "plain":
        colours = bright * base
    else:
        mix = pattern(material.texture, u, v, scale)
        colours = base + mix * (np.array(material.other, np.float32)[:, None, None] - base)
        colours *= bright
    if material.gloss > 0:
        colours += clamp(bright - 1, 0, 1) * np.float32(3 * material.gloss)
    return colours
