"""LOES: layers chosen without labels, by the isotropy of their vectors and how little they repeat each other.

Source: Batra et al., Uncovering the Latent Potential of Deep Intermediate Representations, ICML 2026,
arXiv:2605.23033, and the authors' code (github.com/arnesh2212/loes), whose label-free selection this is.
Their selection with labels also has the residual error of a ridge regression; without labels there is none.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.metrics.arrays import Floats

SMALL = 1e-6  # least eigenvalue, and what is added to their deviation, as in the authors' code
REDUNDANCY = 0.5  # weight of the redundancy beside that of isotropy, 1; their default


def isotropy(vectors: NDArray[np.floating]) -> float:
    """Mean of the eigenvalues of the covariance of vectors [n dim] by their standard deviation, above 0.

    There are min(n, dim) eigenvalues. The authors' code has dim of them if dim is at most 512, which differs
    only for fewer vectors than dimensions.
    """
    exact = vectors.astype(np.float64)
    singular = np.linalg.svd(exact - exact.mean(axis=0), compute_uv=False)
    eigenvalues = np.maximum(singular**2 / len(exact), SMALL)
    return float(eigenvalues.mean() / (eigenvalues.std() + SMALL))


def redundancy(first: Floats, second: Floats) -> float:
    """Norm of the products of two layers' channels by the product of the layers' norms, 0 to 1.

    Layers are given by their Gram matrices [n n] of the same images, float64, which may be of any dimension.
    """
    norms = float(np.trace(first) * np.trace(second))
    return float(np.sqrt(max(float((first * second).sum()), 0.0) / norms)) if norms > 0 else 0.0


def label_free_order(layers: Sequence[NDArray[np.floating]], count: int) -> list[tuple[int, float]]:
    """Indices of up to ``count`` layers in the order in which they are chosen, each with its value.

    Layers are vectors [n dim] of the same images. The value is the isotropy minus `REDUNDANCY` times the
    largest redundancy with a layer that was chosen before; the layer with the highest comes next, of equal
    ones the first.
    """
    even = [isotropy(vectors) for vectors in layers]
    exact = [vectors.astype(np.float64) for vectors in layers]
    grams = [vectors @ vectors.T for vectors in exact]
    chosen: list[tuple[int, float]] = []
    repeated = [0.0] * len(layers)
    while len(chosen) < min(count, len(layers)):
        left = {*range(len(layers))} - {index for index, _ in chosen}
        values = {index: even[index] - REDUNDANCY * repeated[index] for index in sorted(left)}
        best = max(values, key=values.__getitem__)
        chosen.append((best, values[best]))
        repeated = [
            max(before, redundancy(gram, grams[best])) for before, gram in zip(repeated, grams, strict=True)
        ]
    return chosen
