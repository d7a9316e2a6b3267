"""Rebuild the inputs of anomaly.json from its recipes; plain NumPy.

``build(case)`` returns a dict of arrays; tests compare them with their digests.
Random numbers come only from ``Generator(PCG64(seed))`` through ``standard_normal`` (rounded
to multiples of 1/4096) and ``integers``; everything after that is element-wise + - * / on float64, cast at the end.
"""

import numpy as np

from tests.reference.recipes import generator, normal


def test_names(r):
    """Kind (folder) and file name of every test image, in the order of the arrays."""
    return [(kind, "%03d.png" % i) for kind, n in r["kinds"] for i in range(n)]


def _paint(rng, size, shapes, corners):
    """Defect mask (H, W) uint8 0/255: random rectangles, and pairs of squares that touch at one corner only."""
    m = np.zeros(size, dtype=np.uint8)
    h, w = size
    for _ in range(shapes):
        high, wide = (int(v) for v in rng.integers(max(h // 12, 2), h // 4, size=2))
        top, left = int(rng.integers(0, h - high)), int(rng.integers(0, w - wide))
        m[top : top + high, left : left + wide] = 255
    for _ in range(corners):
        a = int(rng.integers(max(h // 16, 2), h // 8))
        top, left = int(rng.integers(0, h - 2 * a)), int(rng.integers(0, w - 2 * a))
        m[top : top + a, left : left + a] = 255
        m[top + a : top + 2 * a, left + a : left + 2 * a] = 255
    return m


def _masks(rng, r):
    """Masks of all test images: zero for good ones and for the images listed in r["empty"]."""
    out = []
    for i, (kind, _) in enumerate(test_names(r)):
        m = _paint(rng, tuple(r["size"]), r["shapes"], r["corners"])
        if kind == "good" or i in r.get("empty", []):
            m[:] = 0
        out.append(m)
    return np.stack(out)


def _share(masks, grid):
    """Share of defect pixels in each grid cell, (n, h, w); cell i covers rows i*H//h to (i+1)*H//h."""
    n, big_h, big_w = masks.shape
    h, w = grid
    out = np.zeros((n, h, w))
    for i in range(h):
        for j in range(w):
            cell = masks[:, i * big_h // h : (i + 1) * big_h // h, j * big_w // w : (j + 1) * big_w // w] > 0
            out[:, i, j] = cell.sum(axis=(1, 2)).astype(np.float64) / float(cell.shape[1] * cell.shape[2])
    return out


def scenes(r):
    """Reference and test features with planted defects.

    ref_features (n_ref, h*w, d) in the order of r["ref_names"] (not sorted), test_features (n_test, h*w, d) in the
    order of `test_names`, both float32 and not L2-normalised; test_masks (n_test, H, W) uint8 0/255.  A cell's
    feature is the vector of its mode, plus signal * share of defect pixels * vector of the defect kind, plus noise,
    plus a common offset, times a random positive factor.  r["keep_percent"] below 100 adds test_keep (n_test, h*w)
    uint8, the foreground (1) among the cells; cells with defect pixels are always foreground.
    """
    rng = generator(r["seed"])
    (h, w), d, n_ref, n = r["grid"], r["dim"], len(r["ref_names"]), len(test_names(r))
    modes, offset = normal(rng, (r["modes"], d)), r["offset"] * normal(rng, (d,))
    defect = {kind: normal(rng, (d,)) for kind, _ in r["kinds"]}
    cell = (np.arange(h)[:, None] * 2 // 3 + np.arange(w)[None, :] // 2) % r["modes"]
    ref = modes[cell][None] + r["noise"] * normal(rng, (n_ref, h, w, d)) + offset
    masks = _masks(rng, r)
    share = _share(masks, (h, w))
    test = modes[cell][None] + r["noise"] * normal(rng, (n, h, w, d)) + offset
    for i, (kind, _) in enumerate(test_names(r)):
        test[i] = test[i] + (r["signal"] * share[i])[..., None] * defect[kind]
    ref = ref * (rng.integers(1, 9, size=(n_ref, h, w, 1)) / 4.0)
    test = test * (rng.integers(1, 9, size=(n, h, w, 1)) / 4.0)
    out = {
        "ref_features": ref.reshape(n_ref, h * w, d).astype(np.float32),
        "test_features": test.reshape(n, h * w, d).astype(np.float32),
        "test_masks": masks,
    }
    if r.get("keep_percent", 100) < 100:
        keep = (rng.integers(0, 100, size=(n, h, w)) < r["keep_percent"]) | (share > 0)
        out["test_keep"] = keep.reshape(n, h * w).astype(np.uint8)
    return out


def signs(r):
    """As `scenes`, but every entry is -1 or +1 (d a power of 4), so that all cosines are exact and many are equal.

    References are rows of a small code book (many duplicates); a test cell repeats its code word with as many
    leading signs flipped as its share of defect pixels tells (rounded up, at most r["flips"]).  The cells in
    r["zero"] (image, cell) are zero vectors.
    """
    rng = generator(r["seed"])
    (h, w), d, n_ref, n = r["grid"], r["dim"], len(r["ref_names"]), len(test_names(r))
    book = rng.integers(0, 2, size=(r["modes"], d)) * 2.0 - 1.0
    ref = book[rng.integers(0, r["modes"], size=(n_ref, h, w))]
    for i in range(n_ref):
        ref[i].reshape(-1, d)[: r["modes"]] = book  # every code word is in every reference image
    masks = _masks(rng, r)
    flips = np.ceil(_share(masks, (h, w)) * r["flips"])
    test = book[rng.integers(0, r["modes"], size=(n, h, w))]
    test = np.where(np.arange(d) < flips[..., None], -test, test).reshape(n, h * w, d)
    for i, c in r["zero"]:
        test[i, c] = 0.0
    return {
        "ref_features": ref.reshape(n_ref, h * w, d).astype(np.float32),
        "test_features": test.astype(np.float32),
        "test_masks": masks,
    }


def maps(r):
    """Anomaly maps and masks for the pixel metrics alone: maps (n, H, W) float64, masks (n, H, W) uint8 0/255.

    Scores are integers 0..r["levels"]-1 over r["levels"] (many ties), plus r["lift"] / levels on defect pixels.
    """
    rng = generator(r["seed"])
    masks = _masks(rng, r)
    level = rng.integers(0, r["levels"], size=masks.shape) + r["lift"] * (masks > 0)
    return {"maps": level / float(r["levels"]), "test_masks": masks}


def build(case):
    """All input arrays of a case."""
    return {"scenes": scenes, "signs": signs, "maps": maps}[case["builder"]](case["recipe"])
