"""Rebuilds the inputs of the reference cases of attention maps from their recipes; NumPy only.

Random numbers come from ``numpy.random.Generator(PCG64(seed))``; normal draws are rounded to multiples of 1/4096.
Attention is no soft-max with exp, whose last bits depend on the platform, but ``w / sum(w)`` with ``w`` a piecewise
linear power of two, whose sums are exact in float64 in any order.
"""

import numpy as np

from tests.reference.recipes import generator, normal


def power_of_two(z):
    """Piecewise linear 2^z for z in multiples of 2^-18, cut to [-12, 8]; exact."""
    z = np.clip(z, -12.0, 8.0)
    whole = np.floor(z)
    return np.ldexp(1.0 + (z - whole), whole.astype(np.int64))


def paint(shape, height, width):
    """(height, width) bool mask of one shape: a rectangle [top, left, height, width] or a disc [cy, cx, r] in pixels."""
    rows, cols = np.mgrid[0:height, 0:width]
    if "box" in shape:
        top, left, h, w = shape["box"]
        return (rows >= top) & (rows < top + h) & (cols >= left) & (cols < left + w)
    cy, cx, r = shape["disc"]
    return (rows - cy) ** 2 + (cols - cx) ** 2 <= r * r


def annotation_arrays(images, height, width):
    """annotations (n, most, height, width) uint8 0/1 and annotation_counts (n,) int64 of lists of shapes; unused ones are 0."""
    most = max([1] + [len(i) for i in images])
    out = np.zeros((len(images), most, height, width), dtype=np.uint8)
    for n, shapes in enumerate(images):
        for a, s in enumerate(shapes):
            out[n, a] = paint(s, height, width)
    return out, np.array([len(i) for i in images], dtype=np.int64)


def attention_maps(r):
    """Attention of L layers and H heads on n images, and object annotations.

    Returns attention (n, L, H, T, T) float32 with T = prefix + gh * gw (class token first, then registers, then patches in raster
    order; rows sum to 1 within float32 rounding), annotations (n, most, gh * p, gw * p) uint8 (0/1, one map an annotated object, in the
    view of the model: no crop needed) and annotation_counts (n,) int64.

    r["heads"][l][h] says how head h of layer l looks at key patch (y, x) from query patch (i, j); the logit is the sum of
      noise * standard normal
      slope * -(|y - i - dy| + |x - j - dx|)   (slope: [vertical, horizontal])     keys relative to the query (patches only)
      anchor_slope * -(|y - a| + |x - b|)      ([a, b] = anchor)                   keys at a fixed place, from all queries
      object_gain * (share of the cell covered by objects, floored to 1/16)        from all queries
      prefix[k]                                                                    key prefix token k, from all queries
    and attention is power_of_two(logit), normalised.  r["all_on_first"] lists [image, layer, head, query]: that row is 1 at key 0, else 0.
    """
    rng = generator(r["seed"])
    n, (gh, gw), prefix, p = r["images"], r["grid"], r["prefix"], r["patch"]
    patches, tokens = gh * gw, gh * gw + prefix
    annotations, counts = annotation_arrays(r["shapes"], gh * p, gw * p)
    union = annotations.max(axis=1).astype(np.int64)
    covered = union.reshape(n, gh, p, gw, p).sum(axis=(2, 4)).reshape(n, patches)
    share = np.floor(covered * 16 / (p * p)) / 16.0
    i, j = np.divmod(np.arange(patches), gw)
    layers, heads = len(r["heads"]), len(r["heads"][0])
    out = np.zeros((n, layers, heads, tokens, tokens))
    for l in range(layers):
        for h in range(heads):
            d = r["heads"][l][h]
            logit = d["noise"] * normal(rng, (n, tokens, tokens))
            if "slope" in d:
                down = np.abs(i[None, :] - i[:, None] - d["dy"])
                right = np.abs(j[None, :] - j[:, None] - d["dx"])
                logit[:, prefix:, prefix:] -= d["slope"][0] * down + d["slope"][1] * right
            if "anchor" in d:
                logit[:, :, prefix:] -= d["anchor_slope"] * (
                    np.abs(i - d["anchor"][0]) + np.abs(j - d["anchor"][1])
                )
            logit[:, :, prefix:] += d.get("object_gain", 0.0) * share[:, None, :]
            logit[:, :, :prefix] += np.asarray(d.get("prefix", [0.0] * prefix), dtype=np.float64)
            w = power_of_two(logit)
            out[:, l, h] = w / w.sum(axis=-1, keepdims=True)
    for image, layer, head, query in r.get("all_on_first", []):
        out[image, layer, head, query] = 0.0
        out[image, layer, head, query, 0] = 1.0
    return {"attention": out.astype(np.float32), "annotations": annotations, "annotation_counts": counts}


def exact_patterns(r):
    """One image, one layer, one head a named pattern: attention (1, 1, H, T, T) float32 with T = prefix + g * g, prefix 1; annotations as above.

    uniform; identity; right (one step right, last column stays); cyclic (one step right, wraps); corner (all patches to the first one);
    both_sides (half one step left, half one step right, clamped); half_cls (half to the class token, half to itself); all_cls (patches look
    only at the class token).  The class token's row: uniform over all tokens, but all_cls: only itself.
    """
    g, names = r["grid"], r["patterns"]
    n = g * g
    i, j = np.divmod(np.arange(n), g)
    out = np.zeros((1, 1, len(names), n + 1, n + 1))
    q = np.arange(n)
    for h, name in enumerate(names):
        a = np.zeros((n + 1, n + 1))
        a[0] = 1.0 / (n + 1)
        if name == "uniform":
            a[:] = 1.0 / (n + 1)
        elif name == "identity":
            a[q + 1, q + 1] = 1.0
        elif name == "right":
            a[q + 1, 1 + i * g + np.minimum(j + 1, g - 1)] = 1.0
        elif name == "cyclic":
            a[q + 1, 1 + i * g + (j + 1) % g] = 1.0
        elif name == "corner":
            a[1:, 1] = 1.0
        elif name == "both_sides":
            a[q + 1, 1 + i * g + np.minimum(j + 1, g - 1)] += 0.5
            a[q + 1, 1 + i * g + np.maximum(j - 1, 0)] += 0.5
        elif name == "half_cls":
            a[q + 1, 0] = 0.5
            a[q + 1, q + 1] = 0.5
        elif name == "all_cls":
            a[:] = 0.0
            a[:, 0] = 1.0
        else:
            raise ValueError(name)
        out[0, 0, h] = a
    annotations, counts = annotation_arrays([r["shapes"]], g * r["patch"], g * r["patch"])
    return {"attention": out.astype(np.float32), "annotations": annotations, "annotation_counts": counts}


def annotation_masks(r):
    """Raw annotation masks of several images of different sizes: "image_<k>" (annotations, height, width) uint8 0/1."""
    out = {}
    for k, image in enumerate(r["images"]):
        out[f"image_{k}"] = annotation_arrays([image["shapes"]], image["height"], image["width"])[0][0]
    return out


def build(case):
    """All input arrays of a case (dict of arrays)."""
    return globals()[case["builder"]](case["recipe"])
