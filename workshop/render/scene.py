"""A scene of posed individuals, and its picture with the owner of every pixel."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from workshop.render.background import Prop, paint_props
from workshop.render.canvas import Canvas
from workshop.render.individual import Individual
from workshop.render.lighting import Light, cast_shadow, develop
from workshop.render.seeds import Rng
from workshop.render.shapes import Affine, Bounds, Field, box_around, rotation
from workshop.render.templates import Facing, Part


@dataclass(frozen=True, slots=True)
class Camera:
    """Transform of a figure before it is placed."""

    rotation: float = 0.0  # degrees, clockwise in the image
    mirror: bool = False  # seen from the other side
    squeeze: float = 1.0  # foreshortening of the figure's x axis, at most 1
    shear: float = 0.0  # horizontal shift a unit of height


@dataclass(frozen=True, slots=True)
class Figure:
    """An individual with joint deviations in degrees (one a part), a camera, and its place."""

    individual: Individual
    angles: tuple[float, ...]  # deviation of each joint from rest, degrees
    camera: Camera
    scale: float = 1.0  # image pixels a template unit
    offset: tuple[float, float] = (0.0, 0.0)  # image position of the template's origin, pixel edges

    def frames(self) -> list[Affine]:
        """Map of each part's coordinates to the image."""
        camera, template = self.camera, self.individual.template
        side = Affine(camera.squeeze * (-1 if camera.mirror else 1), camera.shear, 0.0, 1.0)
        frames = {"": (rotation(camera.rotation) @ side).scaled(self.scale).moved(*self.offset)}
        factors = {"": (1.0, 1.0)}
        for part, deviation in zip(template.parts, self.angles, strict=True):
            along, across = factors[part.parent]
            joint = (part.at[0] * along, part.at[1] * across)
            frames[part.name] = frames[part.parent] @ rotation(part.angle + deviation, joint)
            factors[part.name] = self.individual.stretch[part.kind]
        return [frames[part.name] for part in template.parts]


def figure_bounds(figure: Figure) -> Bounds:
    """A box around all parts in the image; boxes of turned parts make it a little wide."""
    boxes = [
        frame.bounds(part.shape.scaled(*figure.individual.stretch[part.kind]).bounds())
        for frame, part in zip(figure.frames(), figure.individual.template.parts, strict=True)
    ]
    return box_around(corner for box in boxes for corner in (box[:2], box[2:]))


def placed(figure: Figure, size: tuple[float, float]) -> tuple[Figure, tuple[float, float]]:
    """The figure fitted to a width and height and centred on the origin, and its own width and height."""
    left, top, right, bottom = figure_bounds(replace(figure, scale=1.0, offset=(0.0, 0.0)))
    scale = min(size[0] / (right - left), size[1] / (bottom - top))
    offset = (-scale * (left + right) / 2, -scale * (top + bottom) / 2)
    return replace(figure, scale=scale, offset=offset), (scale * (right - left), scale * (bottom - top))


def moved(figure: Figure, x: float, y: float) -> Figure:
    """The figure shifted by pixels."""
    return replace(figure, offset=(figure.offset[0] + x, figure.offset[1] + y))


def landmark_points(figure: Figure) -> NDArray[np.float64]:
    """Image positions of the landmarks, in template order, [landmarks 2], pixel edges."""
    points = []
    for frame, part in zip(figure.frames(), figure.individual.template.parts, strict=True):
        along, across = figure.individual.stretch[part.kind]
        points += [frame.apply(mark.x * along, mark.y * across) for mark in part.landmarks]
    return np.array(points, np.float64).reshape(-1, 2)


def draw_camera(rng: Rng, individual: Individual, turn: float, squeeze: float) -> Camera:
    """A random camera for an individual, with that foreshortening and shear at most, 0 to 1.

    ``turn`` is a share of the class's largest tilt; figures on the ground turn freely whatever it is.
    """
    template = individual.template
    limit = 180.0 if template.facing is Facing.TOP else template.tilt * turn
    return Camera(
        rotation=float(rng.uniform(-limit, limit)),
        mirror=bool(rng.uniform() < 0.5) and template.facing is Facing.SIDE,
        squeeze=float(1 - rng.uniform(0, squeeze)),
        shear=float(rng.uniform(-0.5, 0.5) * squeeze),
    )


@dataclass(frozen=True, slots=True)
class Rendering:
    """A picture and its truth."""

    pixels: NDArray[np.uint8]  # [height width 3]
    # number of the figure that is seen at each pixel, from 1; 0 for none; [height width]
    figures: NDArray[np.int16]
    parts: NDArray[np.int16]  # number of its part, from 1, [height width]
    shown: tuple[float, ...]  # for each figure, share of its own area that is seen, 0 to 1

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Mask of the visible part of the first figure, [height width]."""
        return np.asarray(self.figures == 1)


def _paint_figure(canvas: Canvas, figure: Figure, number: int, light: Light) -> int:
    """Paint a figure and its shadow; returns its area in pixels before anything covers it."""
    below = canvas.pixels.copy()
    canvas.coverage = np.zeros_like(canvas.coverage)
    frames, parts = figure.frames(), figure.individual.template.parts
    for index in sorted(range(len(parts)), key=lambda i: (parts[i].depth, i)):
        part = parts[index]
        shape = part.shape.scaled(*figure.individual.stretch[part.kind])
        material = figure.individual.materials[part.slot]
        canvas.paint(shape, frames[index], material, light, (number, index + 1), part.shade)
    covered = canvas.coverage
    canvas.pixels -= below * (cast_shadow(light, covered, 0.1 * figure.scale) * (1 - covered))
    return int(np.count_nonzero(covered >= np.float32(0.5)))


def render(
    rng: Rng,
    backdrop: Field,
    figures: tuple[Figure, ...],
    light: Light,
    clutter: tuple[Prop, ...] = (),
    occluders: tuple[Prop, ...] = (),
) -> Rendering:
    """The picture of figures before a backdrop [3 height width]; the generator draws the sensor noise alone.

    Clutter is behind the figures, occluders are before them.
    """
    canvas = Canvas(backdrop)
    paint_props(canvas, clutter, light)
    areas = [_paint_figure(canvas, figure, number, light) for number, figure in enumerate(figures, 1)]
    paint_props(canvas, occluders, light)
    seen = np.bincount(canvas.figures.ravel(), minlength=len(areas) + 1)
    shown = tuple(float(seen[number] / max(1, area)) for number, area in enumerate(areas, 1))
    return Rendering(develop(light, canvas.pixels, rng), canvas.figures, canvas.parts, shown)


def visible_landmarks(rendering: Rendering, figure: Figure) -> NDArray[np.bool_]:
    """Whether each landmark of the first figure of a picture is visible: [landmarks].

    A landmark is visible if the topmost shape at its pixel is its own part, the parent of this part, or a
    child: a hip is visible although the thigh is painted over it, a far foot behind a near leg is not.
    """
    parts = figure.individual.template.parts
    height, width = rendering.figures.shape
    owners = [part for part in parts for _ in part.landmarks]

    def is_seen(x: float, y: float, own: Part) -> bool:
        pixel = int(y), int(x)
        if not (0 <= x < width and 0 <= y < height) or rendering.figures[pixel] != 1:
            return False
        top = parts[rendering.parts[pixel] - 1]
        return own.name in (top.name, top.parent) or own.parent == top.name

    return np.array([is_seen(x, y, own) for (x, y), own in zip(landmark_points(figure), owners, strict=True)])
