"""Colours, as sRGB triples from 0 to 1, and their everyday names."""

import colorsys
from collections.abc import Callable

import numpy as np

Colour = tuple[float, float, float]

_HUES = (
    (0.03, "red"),
    (0.11, "orange"),
    (0.19, "yellow"),
    (0.43, "green"),
    (0.54, "teal"),
    (0.70, "blue"),
    (0.81, "purple"),
    (0.95, "pink"),
    (1.01, "red"),
)


def draw_colour(rng: np.random.Generator) -> Colour:
    """A random colour, neither black nor white."""
    return colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0.15, 0.95), rng.uniform(0.3, 0.97))


def draw_dark(rng: np.random.Generator) -> Colour:
    """A nearly black colour."""
    return colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0, 0.5), rng.uniform(0.06, 0.2))


def draw_light(rng: np.random.Generator) -> Colour:
    """A nearly white colour."""
    return colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(0, 0.25), rng.uniform(0.8, 1.0))


def distance(one: Colour, other: Colour) -> float:
    """Euclidean distance with luminance counted twice; 0 to about 2."""
    squares = [(a - b) ** 2 for a, b in zip(one, other, strict=True)]
    return float((sum(squares) + (luminance(one) - luminance(other)) ** 2) ** 0.5)


def mixed(one: Colour, other: Colour, share: float) -> Colour:
    """A mix with that share of the other colour."""
    red, green, blue = (a + share * (b - a) for a, b in zip(one, other, strict=True))
    return (red, green, blue)


def luminance(colour: Colour) -> float:
    """Rec. 601 luma of the sRGB values."""
    return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2]


def draw_unlike(
    rng: np.random.Generator, other: Colour, least: float, draw: Callable[[np.random.Generator], Colour]
) -> Colour:
    """The first of eight drawn colours at least that far from another one, else the farthest."""
    candidates: list[Colour] = []
    for _ in range(8):
        candidates.append(draw(rng))
        if distance(candidates[-1], other) >= least:
            return candidates[-1]
    return max(candidates, key=lambda colour: distance(colour, other))


def colour_name(colour: Colour) -> str:
    """A word for a colour."""
    hue, saturation, value = colorsys.rgb_to_hsv(*colour)
    if value < 0.22:
        return "black"
    if saturation < 0.22:
        return "white" if value > 0.8 else "gray"
    if value < 0.6 and hue < 0.12:
        return "brown"
    return next(name for limit, name in _HUES if hue < limit)
