"""A canvas that shapes are painted on, with the owner of every pixel."""

from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from workshop.render.individual import Material
from workshop.render.lighting import Light, brightness
from workshop.render.shapes import Affine, Field, Shape, clamp
from workshop.render.textures import pattern


class Canvas:
    """Pixels [3 height width] and owners [height width] while a scene is painted, back to front."""

    def __init__(self, backdrop: Field) -> None:
        # mix of sRGB values; planes make numpy's inner loops long
        self.pixels = backdrop.copy()
        # figure number of the topmost shape, and its part number
        self.figures: NDArray[np.int16] = np.zeros(backdrop.shape[1:], np.int16)
        self.parts = np.zeros_like(self.figures)
        # opacity of what was painted since it was last cleared
        self.coverage: Field = np.zeros(backdrop.shape[1:], np.float32)

    def paint(
        self,
        shape: Shape,
        frame: Affine,
        material: Material,
        light: Light,
        owner: tuple[int, int] = (0, 0),
        shade: float = 1.0,
    ) -> None:
        """Paint a shape through the map of its coordinates to the image.

        Its owner is a figure and a part of it, numbers from 1; occluders and the background have none.
        """
        height, width = self.figures.shape
        box = frame.bounds(shape.bounds())
        left, top = max(0, floor(box[0] - 1)), max(0, floor(box[1] - 1))
        right, bottom = min(width, ceil(box[2] + 1)), min(height, ceil(box[3] + 1))
        if left >= right or top >= bottom:
            return
        window = np.s_[top:bottom, left:right]
        # coordinates of the pixel centres in the shape's frame
        back = frame.inverse()
        columns, rows = np.arange(left, right) + 0.5, (np.arange(top, bottom) + 0.5)[:, None]
        u = (back.a * columns + back.x).astype(np.float32) + (back.b * rows).astype(np.float32)
        v = (back.c * columns + back.y).astype(np.float32) + (back.d * rows).astype(np.float32)
        distance, x, y = shape.surface(u, v)
        scale = frame.scale
        edge = np.float32(scale) * distance
        alpha = clamp(np.float32(0.5) - edge, 0, 1)
        a, b, c, d = (np.float32(value / scale) for value in (frame.a, frame.b, frame.c, frame.d))
        bright = brightness(light, a * x + b * y, c * x + d * y) * np.float32(shade)
        # A darker rim of about a pixel keeps parts of one colour apart, as their crevices would.
        bright *= np.float32(1) - np.float32(0.3) * clamp(edge * np.float32(0.6) + 1, 0, 1)
        below = self.pixels[:, *window]
        below += alpha * (_colours(material, u, v, bright, scale) - below)
        solid = alpha >= np.float32(0.5)
        np.copyto(self.figures[window], np.int16(owner[0]), where=solid)
        np.copyto(self.parts[window], np.int16(owner[1]), where=solid)
        np.maximum(self.coverage[window], alpha, out=self.coverage[window])


def _colours(material: Material, u: Field, v: Field, bright: Field, scale: float) -> Field:
    """Lit colours, [3 height width]."""
    pair = material.colour, material.other
    base, other = (np.array(colour, np.float32)[:, None, None] for colour in pair)
    mixed = base
    if material.texture.kind != "plain":
        mixed = base + pattern(material.texture, u, v, scale) * (other - base)
    colours: Field = mixed * bright
    if material.gloss > 0:
        colours += clamp(bright - 1, 0, 1) * np.float32(3 * material.gloss)
    return colours
