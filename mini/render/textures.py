"""Patterns that mix two colours over a surface, as functions of its coordinates."""

from collections.abc import Callable
from dataclasses import dataclass
from math import cos, sin

import numpy as np

from mini.render.shapes import Field, clamp


@dataclass(frozen=True, slots=True)
class Texture:
    """A pattern that mixes two colours.

    Attributes:
        kind: Name in ``TEXTURES``.
        frequency: Radians a template unit.
        angle: Direction in radians.
        phase: Offset in radians; also what tells two noises apart.
        amount: How much of the second colour shows at most, 0 to 1.
    """

    kind: str
    frequency: float
    angle: float
    phase: float
    amount: float


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
TEXTURES = ("plain", *PATTERNS)
"""Names of all textures."""


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
