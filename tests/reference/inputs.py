"""Rebuild the inputs of the golden cases from their recipes.

Every case in the JSON files beside this module has a ``builder`` (a function name below), a ``recipe`` (its
argument) and ``inputs`` (dtype, shape and SHA-256 of each array the builder returns).  ``build(case, folder)``
returns a dict of NumPy arrays; tests compare them with their digests.

Random numbers come only from ``numpy.random.Generator(PCG64(seed))`` through ``standard_normal``, ``integers`` and ``random``.
Normal draws are rounded to multiples of 1/4096 and everything after that uses element-wise + - * / on float64 (no
matrix products, no reductions, no transcendental functions), so the result does not depend on the platform.
Arrays are computed in float64 and cast at the very end to the dtype that is stated.
"""

import json
import os

import numpy as np

from tests.reference.recipes import generator, normal, smooth


def draw_labels(rng, n, weights):
    """(n,) int64 labels 0..C-1, class c with probability weights[c] / sum(weights); integer weights."""
    edges = np.cumsum(np.asarray(weights, dtype=np.int64))
    return np.searchsorted(edges, rng.integers(0, int(edges[-1]), size=n), side="right").astype(np.int64)


# ---------------------------------------------------------------------------------------------- classification


def blobs(r):
    """Class blobs, not L2-normalised.

    Returns train (n_train, dim) float32, train_labels (n_train,) int64, test (n_test, dim) float32,
    test_labels (n_test,) int64.  Rows are multiplied by a random positive factor if r["row_scale"].
    """
    rng = generator(r["seed"])
    means = normal(rng, (len(r["class_weights"]), r["dim"]))
    out = {}
    for part in ("train", "test"):
        n = r["n_" + part]
        y = draw_labels(rng, n, r["class_weights"])
        x = r["mean_scale"] * means[y] + r["noise_scale"] * normal(rng, (n, r["dim"]))
        if r["row_scale"]:
            x = x * (rng.integers(1, 9, size=(n, 1)) / 4.0)
        out[part], out[part + "_labels"] = x.astype(np.float32), y
    return out


def few_shot(r):
    """Class blobs with exactly r["shots"] train samples per class, in shuffled order; keys and dtypes as `blobs`."""
    rng = generator(r["seed"])
    classes, dim = r["n_classes"], r["dim"]
    means = normal(rng, (classes, dim))
    train_labels = np.arange(classes * r["shots"], dtype=np.int64) % classes
    train_labels = train_labels[np.argsort(rng.random(len(train_labels)), kind="stable")]
    test_labels = rng.integers(0, classes, size=r["n_test"]).astype(np.int64)
    offset = normal(rng, (1, dim))
    out = {}
    for part, y in (("train", train_labels), ("test", test_labels)):
        x = r["mean_scale"] * means[y] + r["noise_scale"] * normal(rng, (len(y), dim)) + offset
        out[part], out[part + "_labels"] = x.astype(np.float32), y
    return out


def duplicate_vectors(r):
    """Unit vectors with exactly four entries +-0.5, many of them repeated exactly with different labels.

    All dot products are multiples of 1/4 and exact in any floating-point type.  Returns the same keys, shapes and
    dtypes as `blobs`.  Train rows use the first r["n_train_prototypes"] prototypes, test rows use all of them.
    """
    rng = generator(r["seed"])
    n_proto, dim, classes = r["n_prototypes"], r["dim"], r["n_classes"]
    start = rng.integers(0, dim, size=n_proto)
    step = 2 * rng.integers(0, dim // 2, size=n_proto) + 1  # odd step, dim a power of two: 4 places differ
    sign = rng.integers(0, 2, size=(n_proto, 4)) * 2 - 1
    proto = np.zeros((n_proto, dim))
    for j in range(4):
        proto[np.arange(n_proto), (start + j * step) % dim] = 0.5 * sign[:, j]
    out = {}
    for part, used in (("train", r["n_train_prototypes"]), ("test", n_proto)):
        n = r["n_" + part]
        p = rng.integers(0, used, size=n)
        odd = rng.integers(0, r["odd_one_in"], size=n) == 0  # these copies carry another label
        y = (p + odd * rng.integers(1, classes, size=n)) % classes
        out[part], out[part + "_labels"] = proto[p].astype(np.float32), y.astype(np.int64)
    return out


# --------------------------------------------------------------------------------------------------- retrieval


def retrieval_scores(r, gnd):
    """Structured score matrix for a given ground truth; larger = more similar.

    gnd: {"n_db": int, "queries": [{"easy": [...], "hard": [...], "junk": [...]}, ...]} (database indices).
    Returns scores (n_db, n_queries) float32: no two scores of a query are equal, and all are exact in float32.
    """
    n, queries = gnd["n_db"], gnd["queries"]
    x = normal(generator(r["seed"]), (n, len(queries)))
    for j, q in enumerate(queries):
        for kind in ("easy", "hard", "junk"):
            idx = np.asarray(q[kind], dtype=np.int64)
            x[idx, j] = x[idx, j] + r[kind + "_shift"]
    level = np.clip(np.rint(x * 128.0), -1023, 1023).astype(np.int64)
    tie_breaker = (
        np.arange(n, dtype=np.int64)[:, None] * 2049 + 77 * np.arange(len(queries))[None, :]
    ) % 8192
    return {"scores": ((level * 8192 + tie_breaker) / 2.0**23).astype(np.float32)}


def retrieval_rankings(r):
    """Scores from explicit rankings: r["ranking"][q] lists all database indices, best first.

    Returns scores (n_db, n_queries) float32, value n_db for the best and 1 for the last.
    """
    order = np.asarray(r["ranking"], dtype=np.int64)
    scores = np.zeros((order.shape[1], order.shape[0]))
    for j, o in enumerate(order):
        scores[o, j] = order.shape[1] - np.arange(order.shape[1])
    return {"scores": scores.astype(np.float32)}


def retrieval_features(r):
    """Feature vectors with a random ground truth, not L2-normalised.

    Returns queries (n_q, dim) float32, database (n_db, dim) float32 and relevance (n_db, n_q) int64 with
    0 = negative, 1 = easy, 2 = hard, 3 = junk.
    """
    rng = generator(r["seed"])
    n, q, dim = r["n_db"], r["n_queries"], r["dim"]
    queries = normal(rng, (q, dim))
    relevance = draw_labels(rng, n * q, r["relevance_weights"]).reshape(n, q)
    database = r["noise_scale"] * normal(rng, (n, dim))
    for j in range(q):
        for kind, gain in ((1, r["easy_gain"]), (2, r["hard_gain"]), (3, r["junk_gain"])):
            rows = relevance[:, j] == kind
            database[rows] = database[rows] + gain * queries[j]
    database = database * (rng.integers(1, 9, size=(n, 1)) / 4.0)
    return {
        "queries": queries.astype(np.float32),
        "database": database.astype(np.float32),
        "relevance": relevance,
    }


# ------------------------------------------------------------------------------------------------ video masks


def _paint(frame, shape, t, dx=0, dy=0, shrink=0):
    """Write one moving disc or rectangle into frame (H, W); positions move by quarter pixels per frame, floored."""
    rows, cols = np.mgrid[0 : frame.shape[0], 0 : frame.shape[1]]
    cy = shape["cy"] + (shape["vy4"] * t) // 4 + dy
    cx = shape["cx"] + (shape["vx4"] * t) // 4 + dx
    if shape["form"] == "disc":
        radius = shape["r"] - shrink
        inside = (rows - cy) ** 2 + (cols - cx) ** 2 <= radius * radius if radius >= 0 else rows < 0
    else:
        inside = (np.abs(rows - cy) <= shape["hh"] - shrink) & (np.abs(cols - cx) <= shape["hw"] - shrink)
    frame[inside] = shape["id"]


def moving_shapes(r):
    """Index masks of several short sequences; later shapes cover earlier ones.

    For every sequence s returns "<s>/gt" (T, H, W) uint8 (0 background, ids from 1, 255 void) and "<s>/pred"
    (T, H, W) uint8.  A shape is skipped in ground truth frames gt_absent and in prediction frames pred_absent; in the
    prediction it is moved by (dx, dy) pixels times the frame number // 2 and shrunk by `shrink` pixels.
    """
    out = {}
    for s in r["sequences"]:
        gt = np.zeros((s["frames"], s["height"], s["width"]), dtype=np.uint8)
        pred = np.zeros_like(gt)
        for t in range(s["frames"]):
            for shape in s["shapes"]:
                if t not in shape["gt_absent"]:
                    _paint(gt[t], shape, t)
                if t not in shape["pred_absent"]:
                    _paint(pred[t], shape, t, shape["dx"] * (t // 2), shape["dy"] * (t // 2), shape["shrink"])
            if t in s["void_frames"]:
                top, left, height, width = s["void_box"]
                gt[t, top : top + height, left : left + width] = 255
        out[s["name"] + "/gt"], out[s["name"] + "/pred"] = gt, pred
    return out


def moving_features(r):
    """Token features of a short video and the label map of its first frame.

    Returns features (T, h, w, dim) float32, not L2-normalised, and first_labels (h, w) uint8.  Each region (background
    and rectangles) carries its own smooth random texture that moves with it; independent noise is added per frame.
    """
    rng = generator(r["seed"])
    frames, h, w, dim, margin = r["frames"], r["height"], r["width"], r["dim"], r["margin"]
    size = (h + 2 * margin, w + 2 * margin, dim)
    textures = [smooth(normal(rng, size), r["smooth_passes"]) for _ in range(1 + len(r["objects"]))]
    noise = normal(rng, (frames, h, w, dim))
    rows, cols = np.mgrid[0:h, 0:w]

    def sample(texture, y, x):
        return texture[np.clip(y + margin, 0, size[0] - 1), np.clip(x + margin, 0, size[1] - 1)]

    features = np.zeros((frames, h, w, dim))
    first = np.zeros((h, w), dtype=np.uint8)
    for t in range(frames):
        camera_y, camera_x = (r["camera_vy4"] * t) // 4, (r["camera_vx4"] * t) // 4
        f = sample(textures[0], rows + camera_y, cols + camera_x)
        for texture, o in zip(textures[1:], r["objects"]):
            y, x = rows - (o["top"] + (o["vy4"] * t) // 4), cols - (o["left"] + (o["vx4"] * t) // 4)
            inside = (y >= 0) & (y < o["height"]) & (x >= 0) & (x < o["width"])
            f = np.where(inside[..., None], sample(texture, y, x), f)
            if t == 0:
                first[inside] = o["id"]
        features[t] = r["signal_scale"] * f + r["noise_scale"] * noise[t]
    return {"features": features.astype(np.float32), "first_labels": first}


# --------------------------------------------------------------------------------------------------- keypoints


def shifted_grids(r):
    """Token grids of image pairs; the target shows the same smooth texture moved by whole cells, plus noise.

    Returns source (n_pairs, g, g, dim) and target (n_pairs, g, g, dim), float32, not L2-normalised.
    """
    rng = generator(r["seed"])
    g, dim, margin = r["grid"], r["dim"], r["margin"]
    source, target = [], []
    for dr, dc in r["shifts"]:
        texture = r["signal_scale"] * smooth(
            normal(rng, (g + 2 * margin, g + 2 * margin, dim)), r["smooth_passes"]
        )
        source.append(
            texture[margin : margin + g, margin : margin + g] + r["noise_scale"] * normal(rng, (g, g, dim))
        )
        target.append(
            texture[margin + dr : margin + dr + g, margin + dc : margin + dc + g]
            + r["noise_scale"] * normal(rng, (g, g, dim))
        )
    return {"source": np.stack(source).astype(np.float32), "target": np.stack(target).astype(np.float32)}


# -------------------------------------------------------------------------------------------------- clustering


def labelings(r):
    """Class labels and a noisy cluster assignment.

    Returns classes (n,) int64 and clusters (n,) int64.  r["class_names"] maps class numbers to the integers that
    are used as labels; a cluster number is class * r["split"] + random part, replaced by a random one for a share.
    """
    rng = generator(r["seed"])
    n, names = r["n"], np.asarray(r["class_names"], dtype=np.int64)
    c = draw_labels(rng, n, r["class_weights"])
    clusters = c * r["split"] + rng.integers(0, r["split"], size=n)
    random = rng.integers(0, len(names) * r["split"], size=n)
    clusters = np.where(rng.integers(0, 100, size=n) < r["noise_percent"], random, clusters)
    return {"classes": names[c], "clusters": clusters // r["merge"]}


def mixture(r):
    """Gaussian mixture for k-means: features (n, dim) float32 and classes (n,) int64 (sorted if r["sorted"])."""
    rng = generator(r["seed"])
    means = r["mean_scale"] * normal(rng, (len(r["class_weights"]), r["dim"]))
    y = draw_labels(rng, r["n"], r["class_weights"])
    if r["sorted"]:
        y = np.sort(y)
    x = means[y] + r["noise_scale"] * normal(rng, (r["n"], r["dim"]))
    return {"features": x.astype(np.float32), "classes": y}


# --------------------------------------------------------------------------------------------------------- CKA


def rotate(x, rounds):
    """Rotate the rows of x (n, d): in each round, columns i and i + shift turn by the angle with cos 0.6, sin 0.8."""
    x = x.copy()
    d = x.shape[1]
    for k in range(rounds):
        shift = 1 + (3 * k) % (d - 1)
        for i in range(d):
            j = (i + shift) % d
            a, b = x[:, i].copy(), x[:, j].copy()
            x[:, i], x[:, j] = 0.6 * a - 0.8 * b, 0.8 * a + 0.6 * b
    return x


def feature_sets(r):
    """Three feature sets of the same n samples, float32: A, B, C and B_pure.

    A (n, dims[0]) has class structure (samples sorted by class if r["sorted"]) and very different row norms;
    B (n, dims[1]) = A padded with zeros, rotated, scaled by 2, plus noise; B_pure the same without noise;
    C (n, dims[2]) is independent of A except for the order of samples.
    """
    rng = generator(r["seed"])
    n, (da, db, dc) = r["n"], r["dims"]
    y = rng.integers(0, r["n_classes"], size=n)
    if r["sorted"]:
        y = np.sort(y)
    means = normal(rng, (r["n_classes"], da))
    a = (r["mean_scale"] * means[y] + normal(rng, (n, da))) * (
        rng.integers(1, 1 + r["norm_levels"], size=(n, 1)) / 4.0
    )
    a = a + r["offset"]
    turned = 2.0 * rotate(np.concatenate([a, np.zeros((n, db - da))], axis=1), r["rotation_rounds"])
    b = turned + r["noise_scale"] * normal(rng, (n, db))
    c = normal(rng, (n, dc))
    return {k: v.astype(np.float32) for k, v in (("A", a), ("B", b), ("B_pure", turned), ("C", c))}


def token_sets(r):
    """Two token feature sets sharing part of their signal: X (n, tokens, dx) and Y (n, tokens, dy), float32.

    Token 0 plays the class token, the others are spatial tokens.
    """
    rng = generator(r["seed"])
    n, tokens, (dx, dy) = r["n"], r["tokens"], r["dims"]
    common = normal(rng, (n, tokens, dx))
    x = common + r["noise_scale"] * normal(rng, (n, tokens, dx))
    y = r["noise_scale"] * normal(rng, (n, tokens, dy))
    y[:, :, :dx] = y[:, :, :dx] + common[:, :, ::-1] * (1.0 + np.arange(tokens)[None, :, None] / 2.0)
    return {"X": x.astype(np.float32), "Y": y.astype(np.float32)}


# ----------------------------------------------------------------------------------------------- one of them


def build(case, folder="."):
    """All input arrays of a case (dict of arrays)."""
    function, recipe = globals()[case["builder"]], case["recipe"]
    if case["builder"] == "retrieval_scores":
        with open(os.path.join(folder, recipe["gnd_file"])) as f:
            return function(recipe, json.load(f))
    return function(recipe)
