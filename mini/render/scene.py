"""A scene: what is in a picture, and the picture with the owner of every pixel."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mini.render.background import Prop, paint_props
from mini.render.canvas import Canvas, Owner
from mini.render.figure import Figure, landmark_points
from mini.render.individual import material_of
from mini.render.lighting import Light, cast_shadow, develop
from mini.render.shapes import Field


@dataclass(frozen=True, slots=True)
class Scene:
    """What a picture shows, back to front.

    Attributes:
        backdrop: Background, float32 [3 height width].
        clutter: Shapes behind the figures.
        figures: Figures; number k owns pixels of value k + 1.
        occluders: Shapes before the figures.
        light: The light.
    """

    backdrop: Field
    clutter: tuple[Prop, ...]
    figures: tuple[Figure, ...]
    occluders: tuple[Prop, ...]
    light: Light


@dataclass(frozen=True, slots=True)
class Rendering:
    """A picture and its truth.

    Attributes:
        pixels: uint8 [height width 3].
        figures: Number of the figure that is seen at each pixel, from 1; 0 for none; int16 [height width].
        parts: Number of its part, from 1, int16 [height width].
        shown: For each figure, share of its own area that is seen, 0 to 1.
    """

    pixels: NDArray[np.uint8]
    figures: NDArray[np.int16]
    parts: NDArray[np.int16]
    shown: tuple[float, ...]

    def mask(self, number: int) -> NDArray[np.bool_]:
        """Where figure ``number`` (from 1) is seen, [height width]."""
        return np.asarray(self.figures == number)


def _paint_figure(canvas: Canvas, figure: Figure, number: int, light: Light) -> int:
    """Paint a figure and its shadow; returns its area in pixels before anything covers it."""
    below = canvas.pixels.copy()
    canvas.start_layer()
    frames, parts = figure.frames(), figure.individual.template.parts
    for index in sorted(range(len(parts)), key=lambda i: (parts[i].depth, i)):
        part = parts[index]
        shape = part.shape.scaled(*figure.individual.factors(part))
        owner = Owner(number, index + 1)
        canvas.paint(shape, frames[index], material_of(figure.individual, part), light, owner, part.shade)
    covered = canvas.coverage
    dark = cast_shadow(light, covered, 0.1 * figure.scale) * (1 - covered)
    canvas.pixels -= below * dark
    return int(np.count_nonzero(covered >= np.float32(0.5)))


def render(scene: Scene, rng: np.random.Generator) -> Rendering:
    """The picture of a scene; the generator draws the sensor noise alone."""
    canvas = Canvas(scene.backdrop)
    paint_props(canvas, scene.clutter, scene.light)
    areas = [
        _paint_figure(canvas, figure, number, scene.light) for number, figure in enumerate(scene.figures, 1)
    ]
    paint_props(canvas, scene.occluders, scene.light)
    seen = np.bincount(canvas.figures.ravel(), minlength=len(areas) + 1)
    shown = tuple(float(seen[number] / max(1, area)) for number, area in enumerate(areas, 1))
    return Rendering(develop(scene.light, canvas.pixels, rng), canvas.figures, canvas.parts, shown)


def visible_landmarks(rendering: Rendering, figure: Figure, number: int) -> NDArray[np.bool_]:
    """Which landmarks of figure ``number`` are seen, [landmarks].

    One is seen where the topmost shape at its pixel is its own part, or the part that it hangs on or that
    hangs on it: a hip is seen though the thigh is painted over it, a far foot behind a near leg is not.
    """
    points = landmark_points(figure)
    parts = figure.individual.template.parts
    height, width = rendering.figures.shape
    owners = [part for part in parts for _ in part.landmarks]
    seen = np.zeros(len(points), bool)
    for index, ((x, y), own) in enumerate(zip(points, owners, strict=True)):
        if not (0 <= x < width and 0 <= y < height):
            continue
        row, column = int(y), int(x)
        if rendering.figures[row, column] == number:
            top = parts[rendering.parts[row, column] - 1]
            seen[index] = own.name in (top.name, top.parent) or own.parent == top.name
    return seen
