"""Backgrounds, clutter and occluders: textured, with shapes that look like parts of something."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image

from workshop.render.canvas import Canvas
from workshop.render.individual import Material, draw_ground
from workshop.render.lighting import Light
from workshop.render.seeds import Rng, Size, Span
from workshop.render.shapes import Affine, Capsule, Ellipse, Field, Polygon, Ring, Shape, clamp, rotation
from workshop.render.textures import Colour, Texture, draw_colour, draw_texture, draw_unlike, mixed, pattern

_PLAIN = 0.5  # share of backgrounds without a pattern; one eighth of the rest has none either


@dataclass(frozen=True, slots=True)
class Prop:
    """A shape without a name in the scene; its frame maps unit coordinates to pixels."""

    shape: Shape
    frame: Affine
    material: Material


class Backdrop(NamedTuple):
    """A painted background, float32 [3 height width], and its description for a caption."""

    pixels: Field
    colour: Colour
    texture: str


def clouds(rng: Rng, size: Size, cells: float, octaves: tuple[float, ...] = (1.0,)) -> Field:
    """Smooth noise of mean about 0 and deviation below 1, [height width].

    It has ``cells`` blots along the longer side, times each octave; each octave has half the strength of the
    previous one.
    """
    total = np.zeros(size[::-1], np.float32)
    for number, octave in enumerate(octaves):
        shape = tuple(max(2, round(cells * octave * side / max(size))) + 2 for side in size[::-1])
        noise = Image.fromarray(rng.standard_normal(shape, np.float32))
        resized = noise.resize(size, Image.Resampling.BICUBIC)
        total += np.float32(0.7 * 0.5**number) * np.asarray(resized, np.float32)
    return total


def _fill(rng: Rng, size: Size, pair: tuple[Colour, Colour], texture: Texture) -> Field:
    """Two colours mixed by a texture and blotched by noise, [3 height width]."""
    unit = 1 / max(size)
    u, v = np.meshgrid(*(np.arange(side, dtype=np.float32) * np.float32(unit) for side in size))
    wobble = clouds(rng, size, rng.uniform(2, 7), (1.0, 2.7))
    bend = np.float32(rng.uniform(0, 0.05))
    mix = pattern(texture, u + bend * wobble, v + bend * wobble, 1 / unit)
    first, second = (np.array(colour, np.float32)[:, None, None] for colour in pair)
    mix = clamp(mix + np.float32(rng.uniform(0, 0.35)) * wobble, 0, 1)
    filled: Field = first + mix * (second - first)
    filled *= 1 + np.float32(rng.uniform(0.03, 0.14)) * clouds(rng, size, rng.uniform(8, 30))
    return filled


def draw_backdrop(rng: Rng, size: Size, unlike: Colour, ground: str | None = None) -> Backdrop:
    """A random background with a colour that is usual for ``ground``, if given, and not like ``unlike``."""
    main = draw_unlike(rng, unlike, 0.35, lambda rng: draw_ground(rng, ground))
    other = draw_unlike(rng, unlike, 0.25, draw_colour)
    # Neighbouring shades are commoner than two contrasting colours.
    other = mixed(main, other, float(rng.uniform(0.15, 0.85)))
    texture = draw_texture(rng, (12, 110), plain=_PLAIN)
    pixels = _fill(rng, size, (main, other), texture)
    if rng.uniform() < 0.4:
        pixels = _add_horizon(rng, size, pixels, unlike)
    return Backdrop(pixels, main, texture.kind)


def _add_horizon(rng: Rng, size: Size, sky: Field, unlike: Colour) -> Field:
    """Ground below a slanted, wavy line."""
    width, height = size
    pair = (draw_unlike(rng, unlike, 0.3, draw_colour), draw_colour(rng))
    ground = _fill(rng, size, pair, draw_texture(rng, (15, 110), plain=_PLAIN))
    x = np.arange(width, dtype=np.float32)
    wave = np.sin(x * np.float32(rng.uniform(0.02, 0.12)) + np.float32(rng.uniform(0, 6)))
    line = height * rng.uniform(0.35, 0.75) + (x - width / 2) * rng.uniform(-0.15, 0.15)
    line = line + wave * np.float32(rng.uniform(0, 0.05) * height)
    below = np.clip(np.arange(height, dtype=np.float32)[:, None] - line.astype(np.float32), 0, 1)
    return np.asarray(sky + below * (ground - sky), np.float32)


def _draw_shape(rng: Rng) -> Shape:
    kind = int(rng.integers(5))
    if kind == 0:
        return Ellipse(0, 0, 0.5, float(rng.uniform(0.15, 0.5)))
    if kind == 1:
        return Capsule(0.8, float(rng.uniform(0.04, 0.18)), float(rng.uniform(0.03, 0.14)))
    if kind == 2:
        return Ring(0, 0, float(rng.uniform(0.25, 0.42)), float(rng.uniform(0.03, 0.08)))
    count = int(rng.integers(3, 7))
    turns = np.sort(rng.uniform(0, 2 * np.pi, count)) + np.arange(count) * 1e-3
    radii = rng.uniform(0.25, 0.5, count)
    points = tuple((float(r * np.cos(t)), float(r * np.sin(t))) for r, t in zip(radii, turns, strict=True))
    return Polygon(points, 0.04)


def draw_prop(rng: Rng, centre: Span, scale: float) -> Prop:
    """A random shape about ``scale`` pixels long."""
    colour = draw_colour(rng)
    material = Material(colour, draw_colour(rng), draw_texture(rng, (6, 30)), float(rng.uniform(0, 0.4)))
    return Prop(_draw_shape(rng), rotation(float(rng.uniform(0, 360)), centre, scale), material)


def scatter(rng: Rng, size: Size, count: int, extent: Span, unit: float = 1) -> tuple[Prop, ...]:
    """Random shapes anywhere in a picture, of lengths that are drawn in that unit of pixels."""

    def one() -> Prop:
        centre = float(rng.uniform(0, size[0])), float(rng.uniform(0, size[1]))
        return draw_prop(rng, centre, float(rng.uniform(*extent) * unit))

    return tuple(one() for _ in range(count))


def draw_pole(rng: Rng, x: float, height: float) -> Prop:
    """An upright post through the whole height at about that x."""
    colour, lean = draw_colour(rng), float(rng.uniform(83, 97))
    half = float(rng.uniform(0.02, 0.045))
    material = Material(colour, draw_colour(rng), draw_texture(rng, (10, 40)))
    return Prop(Capsule(1.3, half, half * 0.8), rotation(lean, (x, -0.15 * height), height), material)


def paint_props(canvas: Canvas, props: tuple[Prop, ...], light: Light) -> None:
    """Paint props in order, owned by nobody."""
    for prop in props:
        canvas.paint(prop.shape, prop.frame, prop.material, light)
