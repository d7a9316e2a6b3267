"""Rebuild the inputs of segment.json from its recipes; plain NumPy.

``build(case)`` returns a dict of arrays; tests compare them with their digests.
Random numbers come only from ``Generator(PCG64(seed))`` through ``standard_normal`` (rounded
to multiples of 1/4096) and ``integers``; everything after that is element-wise + - * / on float64, cast at the end.
"""

import numpy as np

from tests.reference.recipes import generator, normal


def _paint(rng, size, shapes, classes, void):
    """Label map (size, size) uint8: rectangles of random classes on 0, each with a void (255) frame if void > 0."""
    m = np.zeros((size, size), dtype=np.uint8)
    for _ in range(shapes):
        top, left = (int(v) for v in rng.integers(-size // 8, size * 7 // 8, size=2))
        high, wide = (int(v) for v in rng.integers(size // 6, size * 2 // 3, size=2))
        c = int(classes[int(rng.integers(0, len(classes)))])
        r0, r1, c0, c1 = max(top, 0), min(top + high, size), max(left, 0), min(left + wide, size)
        if void:
            m[r0:r1, c0:c1] = 255
            r0, r1, c0, c1 = r0 + void, r1 - void, c0 + void, c1 - void
        if r1 > r0 and c1 > c0:
            m[r0:r1, c0:c1] = c
    return m


def blocks(masks, patch):
    """Label maps (n, S*p, S*p) as (n, S, S, p*p): the pixels of each cell in row-major order."""
    n, side, _ = masks.shape
    s = side // patch
    return masks.reshape(n, s, patch, s, patch).transpose(0, 1, 3, 2, 4).reshape(n, s, s, patch * patch)


def scenes(r):
    """Grids and label maps of training and validation images.

    train_features (n_train, S, S, dim), val_features (n_val, S, S, dim) float32, not L2-normalised, and
    train_masks, val_masks (n, S*p, S*p) uint8 (classes 0..C-1, 255 void).  A cell's feature is the average of its
    pixels' class vectors (void: zero), times signal, plus noise, plus a common offset, times a random positive
    factor.  noise (n_train, S*S) float32 are uniform numbers in (0, 1), multiples of 2^-20, for the sampling.
    """
    rng = generator(r["seed"])
    c, s, p, d = r["classes"], r["grid"], r["patch"], r["dim"]
    means, offset = normal(rng, (c, d)), r["offset"] * normal(rng, (1, 1, 1, d))
    out = {}
    for part in ("train", "val"):
        n = r["n_" + part]
        masks = np.stack([_paint(rng, s * p, r["shapes"], r[part + "_classes"], r["void"]) for _ in range(n)])
        cells, x = blocks(masks, p), np.zeros((n, s, s, d))
        for k in range(c):
            share = (cells == k).sum(axis=3).astype(np.float64) / float(p * p)
            x = x + share[..., None] * means[k]
        x = r["signal"] * x + r["noise"] * normal(rng, x.shape) + offset
        x = x * (rng.integers(1, 9, size=(n, s, s, 1)) / 4.0)
        out[part + "_features"], out[part + "_masks"] = x.astype(np.float32), masks
    out["noise"] = (rng.integers(1, 2**20, size=(r["n_train"], s * s)) / 2.0**20).astype(np.float32)
    return out


def planted(r):
    """As `scenes`, without noise array; label maps constant in each cell.

    kind "one-hot": the feature is the class's unit vector (dim = C); "constant": all features are (1, 2, ..., dim);
    "swapped": one-hot, but training labels are replaced by r["swap"][label] (a permutation of the classes);
    "stripes": one-hot, every column of cells one class.
    """
    rng = generator(r["seed"])
    c, s, p = r["classes"], r["grid"], r["patch"]
    out = {}
    for part in ("train", "val"):
        label = rng.integers(0, c, size=(r["n_" + part], s, s)).astype(np.uint8)
        label[0].reshape(-1)[:c] = np.arange(c)  # every class is there
        if r["kind"] == "stripes":
            label = np.repeat(label[:, :1, :], s, axis=1)
        x = (
            np.eye(c)[label]
            if r["kind"] != "constant"
            else np.ones(label.shape + (1,)) * (1.0 + np.arange(c))
        )
        shown = (
            np.asarray(r["swap"], dtype=np.uint8)[label]
            if r["kind"] == "swapped" and part == "train"
            else label
        )
        out[part + "_features"] = x.astype(np.float32)
        out[part + "_masks"] = np.repeat(np.repeat(shown, p, axis=1), p, axis=2)
    return out


def label_maps(r):
    """Ground truth and prediction for the metric alone: gt, pred (n, H, W) uint8.

    Predictions are r["names"][gt] (void: class 0 of names), replaced by a random entry of r["predicted"] for
    r["noise_percent"] of the pixels.
    """
    rng = generator(r["seed"])
    gt = np.stack([_paint(rng, r["side"], r["shapes"], r["gt_classes"], r["void"]) for _ in range(r["n"])])
    names = np.zeros(256, dtype=np.uint8)
    names[: len(r["names"])] = r["names"]
    wrong = np.asarray(r["predicted"], dtype=np.uint8)[rng.integers(0, len(r["predicted"]), size=gt.shape)]
    pred = np.where(rng.integers(0, 100, size=gt.shape) < r["noise_percent"], wrong, names[gt])
    return {"gt": gt, "pred": pred.astype(np.uint8)}


def build(case):
    """All input arrays of a case."""
    return {"scenes": scenes, "planted": planted, "label_maps": label_maps}[case["builder"]](case["recipe"])
