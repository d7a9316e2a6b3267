"""Rebuild the inputs of correspondence.json and tracking.json from their recipes; plain NumPy.

Every case has a ``builder`` (a function name below), a ``recipe`` (its argument) and ``inputs`` (dtype, shape and
SHA-256 of each array).  ``build(case)`` returns a dict of arrays.

Random numbers come only from ``numpy.random.Generator(PCG64(seed))`` (``standard_normal``, ``integers``).  Normal
draws are rounded to multiples of 1/4096, all that follows is element-wise float64 without reductions, products of
matrices or transcendental functions, and the cast to float32 comes last: the result is the same on every platform.
"""

import numpy as np

from tests.reference.recipes import digest, generator, normal, smooth


def pair(r):
    """Source and target grid [grid grid dim] float32 of one world seen through two windows ``shift`` tokens apart.

    Both hold signal_scale * world + noise_scale * noise + position_scale * position + offset, where position is a row
    code plus a column code (the same in both) and offset the first unit vector times ``offset``.  ``blank``
    [grid grid dim] is position_scale * position + 1/16 noise + offset: what a model would say of an empty image.
    """
    rng = generator(r["seed"])
    g, dim, margin = r["grid"], r["dim"], r["margin"]
    world = smooth(normal(rng, (g + 2 * margin, g + 2 * margin, dim)), r["smooth_passes"])
    rows, columns = (smooth(normal(rng, (g, 1, dim)), r["position_passes"]) for _ in range(2))
    position = rows + np.moveaxis(columns, 0, 1)
    offset = np.zeros(dim)
    offset[0] = r["offset"]
    dy, dx = r["shift"]
    out = {}
    for name, (top, left) in {"source": (margin, margin), "target": (margin - dy, margin - dx)}.items():
        noise = normal(rng, (g, g, dim))
        seen = world[top : top + g, left : left + g]
        grid = r["signal_scale"] * seen + r["noise_scale"] * noise + r["position_scale"] * position + offset
        out[name] = grid.astype(np.float32)
    noise = normal(rng, (g, g, dim))
    out["blank"] = (r["position_scale"] * position + noise / 16.0 + offset).astype(np.float32)
    return out


def video(r):
    """features [frames height width dim] float32 of a drifting world with noise; first_mask [H W] uint8 (boxes)."""
    rng = generator(r["seed"])
    h, w, dim, margin, frames = r["height"], r["width"], r["dim"], r["margin"], r["frames"]
    world = smooth(normal(rng, (h + 2 * margin, w + 2 * margin, dim)), r["smooth_passes"])
    features = np.empty((frames, h, w, dim), np.float32)
    for t in range(frames):
        top, left = margin - (t * r["vy4"]) // 4, margin - (t * r["vx4"]) // 4
        noise = normal(rng, (h, w, dim))
        features[t] = (world[top : top + h, left : left + w] + r["noise_scale"] * noise).astype(np.float32)
    mask = np.zeros((r["mask_height"], r["mask_width"]), np.uint8)
    for number, (top, left, bottom, right) in r["boxes"]:
        mask[top:bottom, left:right] = number
    return {"features": features, "first_mask": mask}


def nothing(r):
    """All that the case needs is in its params."""
    return {}


def build(case):
    """Arrays of a case, after checking their digests."""
    arrays = globals()[case["builder"]](case["recipe"])
    for name, expected in case["inputs"].items():
        if digest(arrays[name]) != expected:
            raise ValueError(f"{case['name']}: {name} differs from its digest")
    return {name: arrays[name] for name in case["inputs"]}
