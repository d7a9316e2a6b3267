"""Centred kernel alignment (CKA) of representations with linear kernels.

With a Gram matrix U-centred once, the unbiased HSIC of two representations is an inner product of their
matrices, so all pairs of layers come from one matrix product a batch.

Source: Kornblith et al., Similarity of Neural Network Representations Revisited, ICML 2019 (biased); Song et
al., Feature Selection via Dependence Maximization, JMLR 2012, and Nguyen et al., Do Wide and Deep Networks
Learn the Same Things?, ICLR 2021 (unbiased, over batches).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

SMALLEST = 4  # samples that the unbiased estimator needs
ROUNDING = 16  # multiples of the dtype's precision below which a spread is none


@dataclass(frozen=True, slots=True)
class CkaMatrix:
    """CKA of every representation with every other one.

    Attributes:
        value: [layers layers] float64; 1 on the diagonal. The unbiased estimator may be a little below 0 or
            above 1. NaN where not defined.
        defined: [layers layers] bool; False where one of the two does not vary over the samples.
    """

    value: Tensor
    defined: Tensor


def centred_gram(features: Tensor, *, min_max: bool = False) -> Tensor:
    """U-centred Gram matrix with zero diagonal: [... n n] float64. All zeros for features that do not vary.

    The matrix product runs in float32, or in float64 for features of float64, on features centred over the
    samples, which the estimator does not see but rounding does.

    Args:
        features: [... n dim]; leading dimensions, such as layers, are separate.
        min_max: Scale the Gram matrix of uncentred features to [0, 1], diagonal included, before its diagonal
            is dropped, as the code of Teaching Matters (Walmer et al., CVPR 2023) does.

    Raises:
        ValueError: Fewer than 4 samples, no feature, or a value that is NaN or infinite.
    """
    values = _values(features, SMALLEST)
    gram = _scaled_gram(values) if min_max else _gram(values)
    gram = gram.to(torch.float64)
    gram.diagonal(dim1=-2, dim2=-1).zero_()
    n = gram.shape[-1]
    row = gram.sum(-1, keepdim=True) / (n - 2)
    gram = gram - row - row.mT + row.sum((-2, -1), keepdim=True) / (n - 1)
    gram.diagonal(dim1=-2, dim2=-1).zero_()
    return gram


def gather(grams_a: Tensor, grams_b: Tensor) -> Tensor:
    """Unbiased HSIC of each representation of one stack with each of another: [a b] float64.

    Args:
        grams_a: [a n n] U-centred Gram matrices of a batch.
        grams_b: [b n n] of the same samples. The product runs in the wider of the two dtypes.

    Raises:
        ValueError: Shapes do not fit or n < 4.
    """
    if grams_a.ndim != 3 or grams_b.ndim != 3 or grams_a.shape[1:] != grams_b.shape[1:]:
        found = f"{tuple(grams_a.shape)} and {tuple(grams_b.shape)}"
        raise ValueError(f"expected Gram matrices [a n n] and [b n n], found {found}")
    n = grams_a.shape[-1]
    if n < SMALLEST or grams_a.shape[-2] != n:
        raise ValueError(f"expected square Gram matrices of at least {SMALLEST} samples, found {n}")
    dtype = torch.promote_types(grams_a.dtype, grams_b.dtype)
    product = grams_a.flatten(1).to(dtype) @ grams_b.flatten(1).to(dtype).T
    return product.to(torch.float64) / (n * (n - 3))


class CkaAccumulator:
    """Sums HSIC over batches for all pairs of layers, of however many backbones; every batch weighs the same.

    The sums stay on the device of the first batch, and no batch waits for the host.
    """

    def __init__(self) -> None:
        self._total: Tensor | None = None

    def add(self, grams: Tensor) -> None:
        """Add a batch: [layers n n] U-centred Gram matrices, layers in the same order every time.

        Raises:
            ValueError: Wrong shape, or another number of layers than before.
        """
        hsic = gather(grams, grams)
        if self._total is None:
            self._total = hsic
            return
        if hsic.shape != self._total.shape:
            raise ValueError(f"expected {len(self._total)} layers as before, found {len(hsic)}")
        self._total += hsic

    def matrix(self) -> CkaMatrix:
        """Unbiased minibatch CKA so far.

        Raises:
            ValueError: No batch was added.
        """
        if self._total is None:
            raise ValueError("expected at least one batch, found none")
        return normalise(self._total)


def normalise(hsic: Tensor) -> CkaMatrix:
    """CKA from a matrix of HSIC sums [layers layers], each entry over the root of its two diagonal ones.

    Raises:
        ValueError: Not square.
    """
    if hsic.ndim != 2 or hsic.shape[0] != hsic.shape[1]:
        raise ValueError(f"expected HSIC [layers layers], found {tuple(hsic.shape)}")
    own = hsic.diagonal().to(torch.float64)
    defined = (own > 0)[:, None] & (own > 0)[None, :]
    root = torch.where(own > 0, own, 1.0).sqrt()
    value = hsic.to(torch.float64) / (root[:, None] * root[None, :])
    return CkaMatrix(torch.where(defined, value, torch.nan), defined)


def cka(x: Tensor, y: Tensor, estimator: Literal["unbiased", "biased"] = "unbiased") -> float:
    """CKA of two representations of the same samples, all taken together; NaN where one does not vary.

    Args:
        x: [n dim_x].
        y: [n dim_y].
        estimator: "biased" lies in [0, 1] and nears 1 for unrelated features where dim is much larger than n.

    Raises:
        ValueError: Different samples, too few (4, or 2 for the biased one), or a value NaN or infinite.
    """
    if x.ndim != 2 or y.ndim != 2 or len(x) != len(y):
        raise ValueError(f"expected [n dim] twice, found {tuple(x.shape)} and {tuple(y.shape)}")
    if estimator not in ("unbiased", "biased"):
        raise ValueError(f"expected the estimator to be unbiased or biased, found {estimator!r}")
    if estimator == "unbiased":
        grams = torch.stack([centred_gram(x), centred_gram(y)])
    else:
        grams = torch.stack([_gram(_values(values, 2)).to(torch.float64) for values in (x, y)])
    flat = grams.flatten(1)
    return float(normalise(flat @ flat.T).value[0, 1])


def _values(features: Tensor, samples: int) -> Tensor:
    """Features in at least float32."""
    if features.ndim < 2 or features.shape[-2] < samples or not features.shape[-1]:
        found = tuple(features.shape)
        raise ValueError(f"expected features [... n dim] of at least {samples} samples, found {found}")
    values = features if features.dtype == torch.float64 else features.float()
    if not bool(torch.isfinite(values).all()):
        raise ValueError("features must not hold NaN or infinite values")
    return values


def _gram(values: Tensor) -> Tensor:
    """Gram matrix of features centred over the samples; exactly zero where only rounding varies."""
    centred = values - values.mean(-2, keepdim=True)
    least = ROUNDING * torch.finfo(values.dtype).eps * values.abs().amax((-2, -1), keepdim=True)
    still = centred.abs().amax((-2, -1), keepdim=True) <= least
    return torch.where(still, 0.0, centred @ centred.mT)


def _scaled_gram(values: Tensor) -> Tensor:
    """Gram matrix of uncentred features, scaled to [0, 1]; zero where it is constant."""
    gram = values @ values.mT
    low, high = gram.amin((-2, -1), keepdim=True), gram.amax((-2, -1), keepdim=True)
    still = high - low <= ROUNDING * torch.finfo(values.dtype).eps * gram.abs().amax((-2, -1), keepdim=True)
    return torch.where(still, 0.0, (gram - low) / torch.where(still, 1.0, high - low))
