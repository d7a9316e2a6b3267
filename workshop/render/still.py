"""Random still pictures of one figure, from gentle to hard."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workshop.render.background import Backdrop, Prop, draw_backdrop, draw_pole, draw_prop, scatter
from workshop.render.individual import HABITS, Individual
from workshop.render.lighting import draw_light
from workshop.render.scene import Figure, Rendering, draw_camera, figure_bounds, moved, placed, render
from workshop.render.seeds import Rng, Size


@dataclass(frozen=True, slots=True)
class Variation:
    """Range of variation within a set of pictures."""

    # smallest and largest share of the frame that the figure's box takes
    fill: tuple[float, float] = (0.7, 1.0)
    # largest distance from the centre, as a share of the free room; beyond 1 the figure is cut off
    drift: float = 1.0
    turn: float = 0.6  # share of the class's largest tilt
    squeeze: float = 0.2  # largest foreshortening
    pose: float = 0.8  # share of each joint's swing
    light: float = 0.6  # strength of light, 0 to 1
    clutter: tuple[int, int] = (0, 3)  # least and most shapes behind the figure
    occluders: tuple[int, int] = (0, 1)  # least and most shapes before it
    least_shown: float = 0.8  # least visible share of the figure behind occluders
    most_shown: float = 1.0  # largest visible share


class Still(NamedTuple):
    """A picture of one figure."""

    rendering: Rendering
    figure: Figure
    backdrop: Backdrop


def draw_figure(rng: Rng, individual: Individual, size: Size, variation: Variation) -> Figure:
    """The individual in a random pose, view and place in a frame of that (width, height)."""
    parts = individual.template.parts
    shares = rng.uniform(-variation.pose, variation.pose, len(parts))
    angles = tuple(float(share) * part.swing for share, part in zip(shares, parts, strict=True))
    figure = Figure(individual, angles, draw_camera(rng, individual, variation.turn, variation.squeeze))
    fill = float(rng.uniform(*variation.fill))
    centred, snug = placed(figure, (size[0] * fill, size[1] * fill))
    x, y = (
        side / 2 + 0.5 * float(rng.uniform(-1, 1)) * variation.drift * (side - extent)
        for side, extent in zip(size, snug, strict=True)
    )
    return moved(centred, x, y)


def draw_still(rng: Rng, individual: Individual, size: Size, variation: Variation) -> Still:
    """A random picture of an individual.

    Occluders are drawn at most five times, until what they leave is within the variation's limits.
    """
    ground = HABITS[individual.template.name].ground
    backdrop = draw_backdrop(rng, size, individual.materials[0].colour, ground)
    few, most = variation.clutter
    clutter = scatter(rng, size, int(rng.integers(few, most + 1)), (0.12, 0.45), max(size))
    figure = draw_figure(rng, individual, size, variation)
    light = draw_light(rng, variation.light)
    count = int(rng.integers(variation.occluders[0], variation.occluders[1] + 1))
    scale = 1.0
    for _ in range(5):
        occluders = tuple(draw_occluder(rng, figure, size, scale) for _ in range(count))
        rendering = render(rng, backdrop.pixels, (figure,), light, clutter, occluders)
        if not count or variation.least_shown <= rendering.shown[0] <= variation.most_shown:
            break
        scale *= 0.7 if rendering.shown[0] < variation.least_shown else 1.3
    return Still(rendering, figure, backdrop)


def draw_occluder(rng: Rng, figure: Figure, size: Size, scale: float) -> Prop:
    """A shape before a figure: a post, or anything that overlaps the rim of its box."""
    left, top, right, bottom = figure_bounds(figure)
    if rng.uniform() < 0.25:
        return draw_pole(rng, float(rng.uniform(left, right)), size[1])
    turn = float(rng.uniform(0, 2 * np.pi))
    reach = float(rng.uniform(0.5, 1.0))
    x = (left + right) / 2 + 0.5 * (right - left) * reach * np.cos(turn)
    y = (top + bottom) / 2 + 0.5 * (bottom - top) * reach * np.sin(turn)
    length = float(rng.uniform(0.25, 0.6)) * min(max(right - left, bottom - top), max(size))
    return draw_prop(rng, (float(x), float(y)), length * scale)
