"""From numbers to places on a drawing, with round numbers to write beside an axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MOST_BLOCKS = 26
"""Whole numbers that an axis writes each of, where it has the room."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How numbers of one axis become places on the drawing, with round numbers to write beside it."""

    ticks: tuple[float, ...]
    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The place of a number, in units of the drawing."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


def round_ticks(low: float, high: float, count: int = 6) -> tuple[float, ...]:
    """About so many round numbers, from at most ``low`` to at least ``high``.

    Steps are 1, 2 or 5 times a power of ten; equal ends are moved apart.
    """
    if high <= low:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    raw = (high - low) / (count - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return tuple(round(number * step, 12) for number in range(first, last + 1))


def upward(values: Sequence[float], start: float, stop: float, count: int = 6) -> Scale:
    """A scale whose ends are round numbers around all values; 0 to 1 where there are none, or only zeros."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    ticks = round_ticks(low, high if low or high else 1.0, count)
    return Scale(ticks, ticks[0], ticks[-1], start, stop)


def across(values: Sequence[float], start: float, stop: float, most: int = MOST_BLOCKS) -> Scale:
    """A scale of whole numbers where there are only few, as of blocks, else of round numbers.

    Where more than ``most`` whole numbers would be written, only some are, evenly.
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    if all(value == int(value) for value in values) and high - low <= MOST_BLOCKS:
        ticks = tuple(map(float, whole_ticks(int(low), int(high), most)))
        return Scale(ticks, low - 0.5, high + 0.5, start, stop)
    ticks = round_ticks(low, high, min(most, 6))
    return Scale(ticks, ticks[0], ticks[-1], start, stop)


def whole_ticks(low: int, high: int, most: int) -> list[int]:
    """At most so many whole numbers between two, evenly: each, or multiples of a round step."""
    step = next(
        factor * 10**power
        for power in range(10)
        for factor in (1, 2, 5)
        if high // (factor * 10**power) - (low - 1) // (factor * 10**power) <= most
    )
    return list(range(-(-low // step) * step, high + 1, step))
