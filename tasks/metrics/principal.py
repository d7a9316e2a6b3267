"""Principal directions of patch tokens: colours of a layer, and cosines from a few numbers a token.

Pure functions of arrays in double precision. Colours of the first three directions are usual since Oquab et
al., DINOv2, TMLR 2024, section 7.5. The rotation of a layer's colours onto another's is the orthogonal
Procrustes problem (Schönemann, Psychometrika 1966).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.ndimage import gaussian_filter

from layerboard.tasks.metrics.arrays import SHORTEST, Floats

COLOURS = 3  # directions that become red, green and blue
EDGES = (1, 99)  # percentiles of a colour's numbers that become its ends; what is beyond is cut off
WIDTH = 0.25  # standard deviation of the smooth part, in shorter sides of the grid
LEVELS = 127  # of a whole number of 8 bits with its sign


@dataclass(frozen=True, slots=True)
class PrincipalTokens:
    """Tokens by their first principal directions, the one of the largest variance first.

    The cosine of tokens i and j of length 1 is ``square + along[i] + along[j] + scores[i] @ scores[j]``,
    exactly where all directions are there.
    """

    scores: Floats  # [tokens directions], around the mean token; each direction's largest in size is positive
    along: Floats  # product of each token's difference from the mean token with that: [tokens]
    square: float  # squared length of the mean token
    shares: Floats  # of the variance of all directions: [directions]

    def cosines(self, rows: slice | NDArray[np.int64]) -> Floats:
        """Cosines of some tokens with all: [rows tokens]."""
        near = self.scores[rows] @ self.scores.T
        return np.asarray(self.square + self.along[rows, None] + self.along[None] + near)


def unit(tokens: Floats) -> Floats:
    """Tokens [tokens dim] at length 1; those of zeros stay."""
    return np.asarray(tokens / np.maximum(np.linalg.norm(tokens, axis=1, keepdims=True), SHORTEST))


def principal(tokens: Floats, most: int, enough: float = 1.0) -> PrincipalTokens:
    """The first principal directions of tokens [tokens dim]: as few as hold ``enough`` of the variance.

    They are at most ``most``, and at least `COLOURS` where there are so many.
    """
    mean = tokens.mean(axis=0)
    around = tokens - mean
    wide = len(around) < around.shape[1]
    gram = around @ around.T if wide else around.T @ around
    # NumPy's, though SciPy's finds the last ones alone: the threads of two BLAS libraries wait for each other
    values, vectors = np.linalg.eigh(gram)
    values, vectors = values[: -most - 1 : -1].clip(min=0), vectors[:, : -most - 1 : -1]
    shares = values / max(float(np.trace(gram)), SHORTEST)
    count = max(COLOURS, int(np.searchsorted(shares.cumsum(), enough)) + 1)
    scores = (vectors * np.sqrt(values) if wide else around @ vectors)[:, :count]
    largest = scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])]
    signs = np.where(largest < 0, -1, 1)
    return PrincipalTokens(scores * signs, around @ mean, float(mean @ mean), shares[:count])


def without_smooth(grid: Floats) -> Floats:
    """A grid of tokens [rows columns dim] less what changes slowly over it: its Gaussian blur."""
    sigma = WIDTH * min(grid.shape[:2])
    return np.asarray(grid - gaussian_filter(grid, (sigma, sigma, 0), mode="nearest"))


def turned(scores: Floats, onto: Floats) -> Floats:
    """Scores of `COLOURS` directions [tokens 3], each at variance 1, rotated or mirrored onto others."""
    whitened, target = (each / np.maximum(each.std(axis=0), SHORTEST) for each in (scores, onto))
    return np.asarray(whitened @ orthogonal_procrustes(whitened, target)[0])


def colours(scores: Floats) -> NDArray[np.uint8]:
    """Scores [tokens 3] as RGB, each between its percentiles `EDGES`; grey without a spread."""
    low, high = np.percentile(scores, EDGES, axis=0)
    span = high - low
    share = np.where(span > SHORTEST, (scores - low) / np.maximum(span, SHORTEST), 0.5)
    return np.asarray(np.rint(share.clip(0, 1) * 255), np.uint8)


def quantised(tokens: PrincipalTokens) -> tuple[NDArray[np.int8], Floats]:
    """Scores, and ``along`` behind them, in 8 bits [tokens directions+1], and the step of each column."""
    exact = np.column_stack([tokens.scores, tokens.along])
    steps = np.maximum(np.abs(exact).max(axis=0), SHORTEST) / LEVELS
    return np.rint(exact / steps).astype(np.int8), steps


def restored(whole: NDArray[np.int8], steps: Floats, square: float) -> PrincipalTokens:
    """The tokens that numbers of `quantised` say; their shares are not among these."""
    exact = whole * steps
    return PrincipalTokens(exact[:, :-1], exact[:, -1], square, np.empty(0))
