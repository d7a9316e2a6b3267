"""A posed individual in an image: where its parts and landmarks are."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mini.render.affine import Affine, Bounds, rotation
from mini.render.individual import Individual
from mini.render.templates import Facing


@dataclass(frozen=True, slots=True)
class Camera:
    """How a figure is turned before it is placed.

    Attributes:
        rotation: Degrees, clockwise in the image.
        mirror: Seen from the other side.
        squeeze: Foreshortening of the figure's x axis, at most 1.
        shear: Horizontal shift a unit of height.
    """

    rotation: float = 0.0
    mirror: bool = False
    squeeze: float = 1.0
    shear: float = 0.0

    def linear(self) -> Affine:
        """Template units to unscaled image directions."""
        return rotation(self.rotation) @ Affine(
            self.squeeze * (-1 if self.mirror else 1), self.shear, 0.0, 1.0
        )


@dataclass(frozen=True, slots=True)
class Figure:
    """An individual with joint deviations in degrees (one a part), a camera, and its place.

    Attributes:
        individual: Who it is.
        angles: Deviation of each joint from rest, degrees.
        camera: How it is turned.
        scale: Image pixels a template unit.
        offset: Image position of the template's origin, pixel edges.
    """

    individual: Individual
    angles: tuple[float, ...]
    camera: Camera
    scale: float = 1.0
    offset: tuple[float, float] = (0.0, 0.0)

    def frames(self) -> list[Affine]:
        """Map of each part's coordinates to the image."""
        root = self.camera.linear().scaled(self.scale).moved(*self.offset)
        template = self.individual.template
        frames: dict[str, Affine] = {"": root}
        factors = {"": (1.0, 1.0)}
        for part, deviation in zip(template.parts, self.angles, strict=True):
            along, across = factors[part.parent]
            joint = (part.at[0] * along, part.at[1] * across)
            frames[part.name] = frames[part.parent] @ rotation(part.angle + deviation, joint)
            factors[part.name] = self.individual.factors(part)
        return [frames[part.name] for part in template.parts]


def draw_angles(rng: np.random.Generator, individual: Individual, strength: float = 1.0) -> tuple[float, ...]:
    """Random joint deviations, that share of each joint's swing at most."""
    parts = individual.template.parts
    draws = rng.uniform(-strength, strength, len(parts))
    return tuple(float(draw) * part.swing for draw, part in zip(draws, parts, strict=True))


def figure_bounds(figure: Figure) -> Bounds:
    """A box around all parts in the image; boxes of turned parts make it a little wide."""
    boxes = [
        frame.bounds(part.shape.scaled(*figure.individual.factors(part)).bounds())
        for frame, part in zip(figure.frames(), figure.individual.template.parts, strict=True)
    ]
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return (min(lefts), min(tops), max(rights), max(bottoms))


def placed(figure: Figure, size: tuple[float, float]) -> tuple[Figure, tuple[float, float]]:
    """The figure fitted to a width and height and centred on the origin, and its own width and height."""
    at_one = replace(figure, scale=1.0, offset=(0.0, 0.0))
    left, top, right, bottom = figure_bounds(at_one)
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
        along, across = figure.individual.factors(part)
        points += [frame.apply(mark.x * along, mark.y * across) for mark in part.landmarks]
    return np.array(points, np.float64).reshape(-1, 2)


def draw_camera(rng: np.random.Generator, individual: Individual, turn: float, squeeze: float) -> Camera:
    """A random camera for an individual.

    Args:
        rng: Where numbers come from.
        individual: Who is seen.
        turn: Share of the class's largest tilt; figures on the ground turn freely whatever it is.
        squeeze: Largest foreshortening and shear, 0 to 1.
    """
    template = individual.template
    limit = 180.0 if template.facing is Facing.TOP else template.tilt * turn
    return Camera(
        rotation=float(rng.uniform(-limit, limit)),
        mirror=bool(rng.uniform() < 0.5) and template.facing is Facing.SIDE,
        squeeze=float(1 - rng.uniform(0, squeeze)),
        shear=float(rng.uniform(-0.5, 0.5) * squeeze),
    )
