"""PCA of patch tokens: colours of a layer, and cosines from a few numbers per token.

Pure functions of arrays in double precision. Colours from the first three directions follow Oquab et al.,
DINOv2, TMLR 2024, section 7.5. The rotation of one layer's colours onto another's is the orthogonal
Procrustes problem (Schönemann, Psychometrika 1966).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes

from layerboard.tasks.metrics.arrays import SHORTEST, Floats, lengths

COLOURS = 3  # directions shown as red, green and blue
EDGES = (1, 99)  # percentiles that become the darkest and the brightest value; values beyond are clipped
LEVELS = 127  # largest magnitude of a signed 8-bit integer


@dataclass(frozen=True, slots=True)
class PrincipalTokens:
    """Tokens in terms of their first principal directions, in order of decreasing variance.

    The cosine of unit tokens i and j is ``square + along[i] + along[j] + scores[i] @ scores[j]``; it is exact
    if all directions are kept.
    """

    scores: Floats  # [tokens directions], centred; the entry of largest magnitude per direction is positive
    along: Floats  # inner product of each centred token with the mean token: [tokens]
    square: float  # squared length of the mean token
    shares: Floats  # share of each direction in the total variance: [directions]

    def cosines(self, rows: slice | NDArray[np.int64]) -> Floats:
        """Cosines of the tokens ``rows`` with all tokens: [rows tokens]."""
        near = self.scores[rows] @ self.scores.T
        return np.asarray(self.square + self.along[rows, None] + self.along[None] + near)


def unit(tokens: Floats) -> Floats:
    """Tokens [tokens dim] normalised to length 1; zero tokens stay zero."""
    return np.asarray(tokens / lengths(tokens))


def principal(tokens: Floats, most: int, enough: float = 1.0) -> PrincipalTokens:
    """The fewest principal directions of tokens [tokens dim] that explain a share ``enough`` of the variance.

    At most ``most`` directions are kept, and at least `COLOURS` if there are that many.
    """
    mean = tokens.mean(axis=0)
    around = tokens - mean
    wide = len(around) < around.shape[1]
    gram = around @ around.T if wide else around.T @ around
    # SciPy's eigh could compute the last ones only, but the threads of two BLAS libraries block each other
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[: -most - 1 : -1].clip(min=0), vectors[:, : -most - 1 : -1]
    shares = values / max(float(np.trace(gram)), SHORTEST)
    count = max(COLOURS, int(np.searchsorted(shares.cumsum(), enough)) + 1)
    scores = (vectors * np.sqrt(values) if wide else around @ vectors)[:, :count]
    largest = scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])]
    signs = np.where(largest < 0, -1, 1)
    return PrincipalTokens(scores * signs, around @ mean, float(mean @ mean), shares[:count])


def turned(scores: Floats, onto: Floats) -> Floats:
    """Scores of `COLOURS` directions [tokens 3], scaled to variance 1 and rotated or mirrored onto others."""
    whitened, target = (each / np.maximum(each.std(axis=0), SHORTEST) for each in (scores, onto))
    return np.asarray(whitened @ orthogonal_procrustes(whitened, target)[0])


def colours(scores: Floats) -> NDArray[np.uint8]:
    """Scores [tokens 3] as RGB, scaled between the percentiles `EDGES` of each; grey if constant."""
    low, high = np.percentile(scores, EDGES, axis=0)
    span = high - low
    share = np.where(span > SHORTEST, (scores - low) / np.maximum(span, SHORTEST), 0.5)
    return np.asarray(np.rint(share.clip(0, 1) * 255), np.uint8)


def quantised(tokens: PrincipalTokens) -> tuple[NDArray[np.int8], Floats]:
    """Scores and, as the last column, ``along`` in 8 bits [tokens directions+1], and each column's step."""
    exact = np.column_stack([tokens.scores, tokens.along])
    steps = np.maximum(np.abs(exact).max(axis=0), SHORTEST) / LEVELS
    return np.rint(exact / steps).astype(np.int8), steps


def restore_tokens(whole: NDArray[np.int8], steps: Floats, square: float) -> PrincipalTokens:
    """Tokens restored from the result of `quantised`, without their shares."""
    exact = whole * steps
    return PrincipalTokens(exact[:, :-1], exact[:, -1], square, np.empty(0))
