"""Colours of pictures: of series, and of numbers on a map.

Numbers go from dark blue over green to light yellow in equal steps of lightness, so that they can be read
with any colour vision, and in grey. The steps are equal in Oklab (Ottosson, 2020, "A perceptual color space
for image processing").
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#888888")
"""Colours that people with any colour vision can tell apart (Okabe and Ito), the last one grey."""

LEVELS = 64
"""Steps of a map; more cannot be told apart."""

_CONTROLS = ((42, 13, 84), (59, 82, 139), (33, 145, 140), (110, 206, 88), (250, 232, 60))
"""Colours through which the steps go, of growing lightness."""

_TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)

Floats = NDArray[np.float64]


@cache
def steps() -> NDArray[np.uint8]:
    """The colours of a map, [LEVELS 3], from low to high."""
    controls = to_lab(np.array(_CONTROLS, np.float64))
    lightness = np.linspace(controls[0, 0], controls[-1, 0], LEVELS)
    sides = [np.interp(lightness, controls[:, 0], controls[:, side]) for side in (1, 2)]
    return np.rint(_to_rgb(np.stack([lightness, *sides], axis=1))).astype(np.uint8)


def to_lab(rgb: Floats) -> Floats:
    """Colours [n 3] from 0 to 255 in Oklab: lightness from 0 to 1, green to red, blue to yellow."""
    share = rgb / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    lab: Floats = np.cbrt(linear @ _TO_CONES.T) @ _TO_LAB.T
    return lab


def _to_rgb(lab: Floats) -> Floats:
    """The inverse of `to_lab`, cut to what a screen can show."""
    linear = np.clip((lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_CONES).T, 0, 1)
    share = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    rgb: Floats = share * 255
    return rgb
