"""Colours, as sRGB triples from 0 to 1, with everyday names, and patterns that mix two over a surface."""

import colorsys
from collections.abc import Callable
from dataclasses import dataclass
from math import cos, sin

import numpy as np

from mini.render.shapes import Field, clamp


@dataclass(frozen=True, slots=True)
class Texture:
    """A pattern that mixes two colours."""

    kind: str  # name in ``TEXTURES``
    frequency: float  # radians a template unit
    angle: float  # direction in radians
    phase: float  # offset in radians; also what tells two noises apart
    amount: float  # how much of the second colour shows at most, 0 to 1


def _stripes(x: Field, y: Field, phase: float) -> Field:
    wave: Field = np.sin(x + np.float32(0.35) * np.sin(y * np.float32(0.6) + np.float32(phase)))
    return wave


def _spots(x: Field, y: Field, phase: float) -> Field:
    shifted = x + np.float32(0.5) * np.sin(y * np.float32(0.37) + np.float32(phase))
    wave: Field = np.sin(shifted) * np.sin(y) * np.float32(1.6) - np.float32(0.7)
    return wave


def _checks(x: Field, y: Field, phase: float) -> Field:
    wave: Field = np.sin(x * np.float32(0.8)) * np.sin(y * np.float32(0.8)) * np.float32(1.5)
    return wave


def _noise(x: Field, y: Field, phase: float) -> Field:
    first = np.sin(x * np.float32(0.7) + np.float32(2.1) * np.sin(y * np.float32(0.55) + np.float32(phase)))
    inner = np.float32(1.7) * np.sin(x * np.float32(0.9) - np.float32(2 * phase))
    wave: Field = first + np.float32(0.8) * np.sin(y * np.float32(1.3) + inner)
    return wave


def _zigzag(x: Field, y: Field, phase: float) -> Field:
    wave: Field = np.sin(x + np.float32(1.8) * np.arcsin(np.sin(y * np.float32(0.9) + np.float32(phase))))
    return wave


def _rings(x: Field, y: Field, phase: float) -> Field:
    cx, cy = np.float32(3 * cos(phase)), np.float32(3 * sin(phase))
    wave: Field = np.sin(np.sqrt((x - cx) ** 2 + (y - cy) ** 2) * np.float32(1.2))
    return wave


def _gradient(x: Field, y: Field, phase: float) -> Field:
    wave: Field = np.sin(x * np.float32(0.22)) * np.float32(0.8)
    return wave


PATTERNS: dict[str, Callable[[Field, Field, float], Field]] = {
    "striped": _stripes,
    "spotted": _spots,
    "checked": _checks,
    "mottled": _noise,
    "zigzag": _zigzag,
    "ringed": _rings,
    "shaded": _gradient,
}
TEXTURES = ("plain", *PATTERNS)  # names of all textures


def pattern(texture: Texture, u: Field, v: Field, pixels: float) -> Field:
    """Share of the second colour at points.

    Args:
        texture: The pattern.
        u: x of the points, template units.
        v: y of them, same shape.
        pixels: Image pixels a template unit; edges in the pattern become about one pixel wide.

    Returns:
        Values from 0 to ``texture.amount``.
    """
    if texture.kind == "plain":
        return np.zeros_like(u)
    turn = (texture.frequency * cos(texture.angle), texture.frequency * sin(texture.angle))
    x = u * np.float32(turn[0]) + v * np.float32(turn[1]) + np.float32(texture.phase)
    y = v * np.float32(turn[0]) - u * np.float32(turn[1]) + np.float32(1.7 * texture.phase)
    sharpness = 0.5 if texture.kind == "shaded" else min(4.0, max(0.35, 0.8 * pixels / texture.frequency))
    wave = PATTERNS[texture.kind](x, y, texture.phase)
    return clamp(np.float32(0.5) + wave * np.float32(sharpness), 0, 1) * np.float32(texture.amount)


def draw_texture(
    rng: np.random.Generator, frequency: tuple[float, float], kind: str | None = None, plain: float = 0.0
) -> Texture:
    """A random texture.

    Args:
        rng: Where numbers come from.
        frequency: Lowest and highest, log-uniform.
        kind: Name in ``TEXTURES``; drawn if None.
        plain: Probability of none, before a kind is drawn.
    """
    low, high = np.log(frequency)
    drawn = "plain" if rng.uniform() < plain else TEXTURES[rng.integers(len(TEXTURES))]
    return Texture(
        kind=kind or drawn,
        frequency=float(np.exp(rng.uniform(low, high))),
        angle=float(rng.uniform(0, np.pi)),
        phase=float(rng.uniform(0, 2 * np.pi)),
        amount=float(rng.uniform(0.6, 1.0)),
    )


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
