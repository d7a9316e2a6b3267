"""Colours, as sRGB triples from 0 to 1, with everyday names, and patterns that mix two over a surface."""

import colorsys
from bisect import bisect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import cos, sin

import numpy as np

from workshop.render.seeds import Rng, Span
from workshop.render.shapes import Field, clamp


@dataclass(frozen=True, slots=True)
class Texture:
    """A pattern that mixes two colours."""

    kind: str  # name in ``TEXTURES``
    frequency: float  # radians a template unit
    angle: float  # direction in radians
    phase: float  # offset in radians; also what tells two noises apart
    amount: float  # how much of the second colour shows at most, 0 to 1


f = np.float32  # constants that keep arrays in single precision

# waves from about -1 to 1 at points, of a phase
PATTERNS: dict[str, Callable[[Field, Field, float], Field]] = {
    "striped": lambda x, y, phase: np.sin(x + f(0.35) * np.sin(y * f(0.6) + f(phase))),
    "spotted": lambda x, y, phase: (
        np.sin(x + f(0.5) * np.sin(y * f(0.37) + f(phase))) * np.sin(y) * f(1.6) - f(0.7)
    ),
    "checked": lambda x, y, phase: np.sin(x * f(0.8)) * np.sin(y * f(0.8)) * f(1.5),
    "mottled": lambda x, y, phase: (
        np.sin(x * f(0.7) + f(2.1) * np.sin(y * f(0.55) + f(phase)))
        + f(0.8) * np.sin(y * f(1.3) + f(1.7) * np.sin(x * f(0.9) - f(2 * phase)))
    ),
    "zigzag": lambda x, y, phase: np.sin(x + f(1.8) * np.arcsin(np.sin(y * f(0.9) + f(phase)))),
    "ringed": lambda x, y, phase: np.sin(
        np.sqrt((x - f(3 * cos(phase))) ** 2 + (y - f(3 * sin(phase))) ** 2) * f(1.2)
    ),
    "shaded": lambda x, y, phase: np.sin(x * f(0.22)) * f(0.8),
}
TEXTURES = ("plain", *PATTERNS)  # names of all textures


def pattern(texture: Texture, u: Field, v: Field, pixels: float) -> Field:
    """Share of the second colour at points in template units, from 0 to ``texture.amount``.

    Edges in the pattern are about one pixel wide; ``pixels`` is the number of pixels per template unit.
    """
    if texture.kind == "plain":
        return np.zeros_like(u)
    along, across = f(texture.frequency * cos(texture.angle)), f(texture.frequency * sin(texture.angle))
    x = u * along + v * across + f(texture.phase)
    y = v * along - u * across + f(1.7 * texture.phase)
    sharpness = 0.5 if texture.kind == "shaded" else min(4.0, max(0.35, 0.8 * pixels / texture.frequency))
    wave = PATTERNS[texture.kind](x, y, texture.phase)
    return clamp(f(0.5) + wave * f(sharpness), 0, 1) * f(texture.amount)


def draw_texture(rng: Rng, frequency: Span, kind: str | None = None, plain: float = 0.0) -> Texture:
    """A random texture, of a frequency that is log-uniform from the lowest to the highest.

    ``plain`` is the probability of no pattern, before a kind is drawn; it is drawn even where it is given.
    """
    drawn = "plain" if rng.uniform() < plain else TEXTURES[rng.integers(len(TEXTURES))]
    return Texture(
        kind=kind or drawn,
        frequency=float(np.exp(rng.uniform(*np.log(frequency)))),
        angle=float(rng.uniform(0, np.pi)),
        phase=float(rng.uniform(0, 2 * np.pi)),
        amount=float(rng.uniform(0.6, 1.0)),
    )


Colour = tuple[float, float, float]

_HUES = ("red", "orange", "yellow", "green", "teal", "blue", "purple", "pink", "red")
_FROM = (0.03, 0.11, 0.19, 0.43, 0.54, 0.70, 0.81, 0.95)  # hues at which all but the first begin


def draw_colour(rng: Rng, saturation: Span = (0.15, 0.95), value: Span = (0.3, 0.97)) -> Colour:
    """A random colour within ranges; by default neither black nor white."""
    return colorsys.hsv_to_rgb(rng.uniform(), rng.uniform(*saturation), rng.uniform(*value))


draw_dark = partial(draw_colour, saturation=(0, 0.5), value=(0.06, 0.2))
draw_light = partial(draw_colour, saturation=(0, 0.25), value=(0.8, 1.0))


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


def draw_unlike(rng: Rng, other: Colour, least: float, draw: Callable[[Rng], Colour]) -> Colour:
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
    return _HUES[bisect(_FROM, hue)]
