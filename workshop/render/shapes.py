"""Geometry: affine maps, and outlines of parts as signed distances and surface tilts over pixels.

Coordinates are a part's own: origin at its joint, x along the bone, y down, in template units (a figure is
about one unit long). Distances are negative inside. Maps are plain floats: for single points they are several
times faster than arrays.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import cos, radians, sin

import numpy as np
from numpy.typing import NDArray

Bounds = tuple[float, float, float, float]  # (left, top, right, bottom)


@dataclass(frozen=True, slots=True)
class Affine:
    """Maps (u, v) to (a u + b v + x, c u + d v + y)."""

    a: float
    b: float
    c: float
    d: float
    x: float = 0.0
    y: float = 0.0

    def __matmul__(self, inner: "Affine") -> "Affine":
        u, v = self.apply(inner.x, inner.y)
        return Affine(
            self.a * inner.a + self.b * inner.c,
            self.a * inner.b + self.b * inner.d,
            self.c * inner.a + self.d * inner.c,
            self.c * inner.b + self.d * inner.d,
            u,
            v,
        )

    @property
    def scale(self) -> float:
        """Mean scale: the square root of the area factor."""
        return float(abs(self.a * self.d - self.b * self.c) ** 0.5)

    def apply(self, u: float, v: float) -> tuple[float, float]:
        """Where the map takes a point."""
        return (self.a * u + self.b * v + self.x, self.c * u + self.d * v + self.y)

    def inverse(self) -> "Affine":
        """The inverse map, from the image back."""
        area = self.a * self.d - self.b * self.c
        a, b, c, d = self.d / area, -self.b / area, -self.c / area, self.a / area
        return Affine(a, b, c, d, -(a * self.x + b * self.y), -(c * self.x + d * self.y))

    def moved(self, x: float, y: float) -> "Affine":
        """The map followed by a shift."""
        return Affine(self.a, self.b, self.c, self.d, self.x + x, self.y + y)

    def scaled(self, factor: float) -> "Affine":
        """The map followed by a scaling."""
        return Affine(*(factor * value for value in (self.a, self.b, self.c, self.d, self.x, self.y)))

    def bounds(self, box: Bounds) -> Bounds:
        """The upright box around the image of a box."""
        return box_around([self.apply(u, v) for u in (box[0], box[2]) for v in (box[1], box[3])])


def box_around(points: Iterable[tuple[float, float]], margin: float = 0) -> Bounds:
    """The upright box around points, with a margin."""
    xs, ys = zip(*points, strict=True)
    return (min(xs) - margin, min(ys) - margin, max(xs) + margin, max(ys) + margin)


def rotation(degrees: float, at: tuple[float, float] = (0.0, 0.0), scale: float = 1.0) -> Affine:
    """A clockwise turn (y is down) and a scaling about the origin, then a shift to ``at``."""
    c, s = scale * cos(radians(degrees)), scale * sin(radians(degrees))
    return Affine(c, -s, s, c, *at)


Field = NDArray[np.float32]


def clamp(values: Field, low: float, high: float) -> Field:
    """Values limited to a range; on small arrays several times faster than ``np.clip``."""
    limited: Field = np.minimum(np.maximum(values, np.float32(low)), np.float32(high))
    return limited


# of a shape at some points: signed distance to its outline in template units, and how far its rounded surface
# is tilted in x and in y, -1 to 1; 0 faces the viewer
Surface = tuple[Field, Field, Field]


@dataclass(frozen=True, slots=True)
class Ellipse:
    """An axis-aligned ellipse; distances are the first-order ones, exact on the outline."""

    cx: float
    cy: float
    rx: float
    ry: float

    def surface(self, u: Field, v: Field) -> Surface:
        x = (u - np.float32(self.cx)) / np.float32(self.rx)
        y = (v - np.float32(self.cy)) / np.float32(self.ry)
        radius = np.sqrt(x * x + y * y) + np.float32(1e-6)
        gradient = np.sqrt((x / np.float32(self.rx)) ** 2 + (y / np.float32(self.ry)) ** 2) + np.float32(1e-6)
        return radius * (radius - 1) / gradient, x, y

    def bounds(self) -> Bounds:
        return (self.cx - self.rx, self.cy - self.ry, self.cx + self.rx, self.cy + self.ry)

    def scaled(self, along: float, across: float) -> "Ellipse":
        return Ellipse(self.cx * along, self.cy * across, self.rx * along, self.ry * across)


@dataclass(frozen=True, slots=True)
class Capsule:
    """A tapered rod from the origin along x, with round ends of radius ``start`` and ``end``."""

    length: float
    start: float
    end: float

    def surface(self, u: Field, v: Field) -> Surface:
        share = clamp(u / np.float32(self.length), 0, 1)
        radius = np.float32(self.start) + np.float32(self.end - self.start) * share
        x = u - share * np.float32(self.length)
        return np.sqrt(x * x + v * v) - radius, x / radius, v / radius

    def bounds(self) -> Bounds:
        widest = max(self.start, self.end)
        return (-self.start, -widest, self.length + self.end, widest)

    def scaled(self, along: float, across: float) -> "Capsule":
        return Capsule(self.length * along, self.start * across, self.end * across)


@dataclass(frozen=True, slots=True)
class Polygon:
    """A polygon grown by ``rounding``, which no stretch changes, with a bevelled edge."""

    points: tuple[tuple[float, float], ...]
    rounding: float = 0.02

    def surface(self, u: Field, v: Field) -> Surface:
        # even-odd rule, all edges at once
        corners = np.array(self.points, np.float32)[:, :, None, None]
        edges = np.roll(corners, -1, axis=0) - corners
        ex, ey = edges[:, 0], edges[:, 1]
        wx, wy = u - corners[:, 0], v - corners[:, 1]
        share = clamp((wx * ex + wy * ey) / (ex * ex + ey * ey), 0, 1)
        dx, dy = wx - ex * share, wy - ey * share
        square = dx * dx + dy * dy
        nearest = square.argmin(0)[None]
        dx, dy, square = (np.take_along_axis(each, nearest, 0)[0] for each in (dx, dy, square))
        length = np.sqrt(square)
        # A ray to the right crosses an edge whose ends lie on both sides and that passes right of the point.
        crosses = ((wy >= 0) != (wy >= ey)) & ((wx * ey < wy * ex) == (ey > 0))
        sign = np.where(np.logical_xor.reduce(crosses, axis=0), np.float32(-1), np.float32(1))
        bevel = sign * clamp(1 - length / np.float32(0.08), 0, 0.8) / (length + np.float32(1e-6))
        return sign * length - np.float32(self.rounding), dx * bevel, dy * bevel

    def bounds(self) -> Bounds:
        return box_around(self.points, self.rounding)

    def scaled(self, along: float, across: float) -> "Polygon":
        return Polygon(tuple((x * along, y * across) for x, y in self.points), self.rounding)


@dataclass(frozen=True, slots=True)
class Ring:
    """A circle line of half width ``half`` around (cx, cy); it stays round and takes the mean stretch."""

    cx: float
    cy: float
    radius: float
    half: float

    def surface(self, u: Field, v: Field) -> Surface:
        x, y = u - np.float32(self.cx), v - np.float32(self.cy)
        length = np.sqrt(x * x + y * y) + np.float32(1e-6)
        offset = length - np.float32(self.radius)
        tilt = offset / (length * np.float32(self.half))
        return np.abs(offset) - np.float32(self.half), x * tilt, y * tilt

    def bounds(self) -> Bounds:
        outer = self.radius + self.half
        return (self.cx - outer, self.cy - outer, self.cx + outer, self.cy + outer)

    def scaled(self, along: float, across: float) -> "Ring":
        mean = (along * across) ** 0.5
        return Ring(self.cx * mean, self.cy * mean, self.radius * mean, self.half * mean)


# `surface` tells of points, `bounds` gives a box that holds the shape, `scaled` stretches it in x and y about
# its origin
Shape = Ellipse | Capsule | Polygon | Ring
