"""Centred kernel alignment (CKA) of representations with linear kernels.

The unbiased HSIC of two representations is the inner product of their U-centred Gram matrices, so one matrix
product per batch gives all pairs of layers.

Source: Kornblith et al., Similarity of Neural Network Representations Revisited, ICML 2019 (biased); Song et
al., Feature Selection via Dependence Maximization, JMLR 2012, and Nguyen et al., Do Wide and Deep Networks
Learn the Same Things?, ICLR 2021 (unbiased, over batches).
"""

from collections.abc import Iterable, Iterator
from functools import reduce

import torch
from torch import Tensor

from layerboard.tasks.metrics.arrays import ROUNDING

SMALLEST_BATCH = 4  # samples that the unbiased estimator needs
SHARES = 1 << 23  # products of layers in memory at a time
CACHED = 1 << 22  # values that a CPU centres and multiplies at a time, to read them from memory only once
CENTRED = 1 << 16
"""Values of Gram matrices that a CPU U-centres at a time, in several passes over its cache."""

AT_ONCE = 1 << 26  # the same on a GPU, where a few large kernels are faster


def centred_gram(features: Tensor, *, min_max: bool = False) -> Tensor:
    """U-centred Gram matrix of features [... n dim]: [... n n] float64, with diagonal 0; 0 for equal samples.

    The matrix product runs in float32, or in float64 for float64 features. Features are first centred over
    the samples, which does not change the estimator but reduces rounding errors. With ``min_max``, the Gram
    matrix of uncentred features is scaled to [0, 1], including its diagonal, before the diagonal is dropped,
    as in the code of Teaching Matters (Walmer et al., CVPR 2023).
    """
    gram = gram_matrix(features, centred=not min_max)
    return u_centred(scaled_gram(gram) if min_max else gram)


def gram_matrix(features: Tensor, *, centred: bool = True) -> Tensor:
    """Gram matrix [... n n] of features [... n dim]: float32, or float64 for float64 features.

    With ``centred``, the mean of the samples is subtracted first; the result is exactly zero if samples
    differ only by rounding: if the root mean square deviation of every sample is within a few rounding errors
    of the largest mean. The matrix of features that are not finite is not finite (`finite_gram`), and neither
    is anything computed from it.
    """
    if not centred:
        return _sum_of_products(_blocks(features, whole=True))
    means: list[Tensor] = []

    def around_mean(part: Tensor) -> Tensor:
        mean = part.mean(-2, keepdim=True)
        means.append(mean.abs().amax((-2, -1), keepdim=True))
        return part - mean

    gram = _sum_of_products(map(around_mean, _blocks(features)))
    largest = torch.stack(means).amax(0)
    spread = gram.diagonal(dim1=-2, dim2=-1).amax(-1)[..., None, None].sqrt()
    least = ROUNDING * torch.finfo(gram.dtype).eps * features.shape[-1] ** 0.5 * largest
    return gram.mul_(~(spread <= least))  # a product of contiguous values: `where` takes ten times as long


def finite_gram(gram: Tensor) -> Tensor:
    """Whether the features of Gram matrices [... n n] were finite, judged by the diagonal: [...] bool."""
    return torch.isfinite(gram.diagonal(dim1=-2, dim2=-1)).all(dim=-1)


def _blocks(features: Tensor, *, whole: bool = False) -> Iterator[Tensor]:
    """Features of all samples in blocks of columns, at least float32; whole if that needs no copy."""
    exact = features.dtype in (torch.float32, torch.float64)
    most = CACHED if features.device.type == "cpu" else AT_ONCE
    width = features.shape[-1] if whole and exact else most // (features[..., 0].numel() or 1) + 1
    for part in torch.split(features, width, dim=-1):
        yield part if exact else part.float()


def _sum_of_products(parts: Iterable[Tensor]) -> Tensor:
    """Gram matrix [... n n] of features given in blocks of columns [... n some]."""
    return reduce(torch.add, (part @ part.mT for part in parts))


def scaled_gram(gram: Tensor) -> Tensor:
    """A Gram matrix [... n n] scaled to [0, 1] by its smallest and largest entry; zero if it is constant."""
    low, high = gram.amin((-2, -1), keepdim=True), gram.amax((-2, -1), keepdim=True)
    still = high - low <= ROUNDING * torch.finfo(gram.dtype).eps * gram.abs().amax((-2, -1), keepdim=True)
    return torch.where(still, 0.0, (gram - low) / torch.where(still, 1.0, high - low))


def u_centred(gram: Tensor) -> Tensor:
    """A Gram matrix [... n n], n >= 4, without its diagonal, U-centred: rows and columns sum to 0; float64.

    Source: Székely and Rizzo, Partial Distance Correlation, Annals of Statistics 2014.
    """
    n = gram.shape[-1]
    gram = gram.to(torch.float64, copy=True)
    gram.diagonal(dim1=-2, dim2=-1).zero_()
    row = gram.sum(-1, keepdim=True) / (n - 2)
    total = row.sum((-2, -1), keepdim=True) / (n - 1)
    gram = gram.sub_(row).sub_(row.mT).add_(total)
    gram.diagonal(dim1=-2, dim2=-1).zero_()
    return gram


def variance(gram: Tensor, *, min_max: bool = False) -> Tensor:
    """Total variance of the features of Gram matrices [... n n], [...] float64; ``min_max`` scales them."""
    n, square = gram.shape[-1], (-2, -1)
    total = gram.diagonal(dim1=-2, dim2=-1).sum(-1, dtype=torch.float64)
    total = (total - gram.sum(square, dtype=torch.float64) / n) / (n - 1)
    span = (gram.amax(square) - gram.amin(square)).double()
    return torch.where(span > 0, total / span, 0.0) if min_max else total


def rounded_centred(grams: Tensor, *, min_max: bool = False) -> Tensor:
    """U-centred Gram matrices [... n n] in float32, computed in float64, a few at a time."""
    flat = grams.reshape(-1, *grams.shape[-2:])
    most = CENTRED if flat.device.type == "cpu" else AT_ONCE
    pieces = torch.split(flat, max(1, most // max(1, flat.shape[-1] ** 2)))
    centred = [u_centred(scaled_gram(some) if min_max else some).float() for some in pieces]
    return torch.cat(centred).view(grams.shape)


def gather(grams_a: Tensor, grams_b: Tensor) -> Tensor:
    """Unbiased HSIC of each representation of one stack with each of another: [a b] float64.

    The stacks are U-centred Gram matrices [a n n] and [b n n] of the same samples, with n at least 4. The
    product runs in the wider of the two dtypes.
    """
    n = grams_a.shape[-1]
    dtype = torch.promote_types(grams_a.dtype, grams_b.dtype)
    return (grams_a.flatten(1).to(dtype) @ grams_b.flatten(1).to(dtype).T).to(torch.float64) / (n * (n - 3))


class CkaAccumulator:
    """Sums HSIC over batches for all pairs of layers, of any number of backbones; batches have equal weight.

    The sums stay on the device of the first batch, without synchronisation with the host. With ``errors``,
    which takes about three times the work, `sums` and `standard_error` are available.
    """

    def __init__(self, *, errors: bool = False) -> None:
        self._errors = errors
        self._sums: Tensor | None = None

    def add(self, grams: Tensor) -> None:
        """Add a batch: [layers n n] U-centred Gram matrices, layers in the same order every time."""
        hsic = gather(grams, grams)
        parts = torch.stack([hsic, *(_moments(grams, hsic) if self._errors else ())])
        self._sums = parts if self._sums is None else self._sums + parts

    def sums(self) -> Tensor:
        """The sums of all batches, with those for errors: [4 layers layers] float64; they may be added up."""
        if self._sums is None or not self._errors:
            raise ValueError("expected a sum that keeps errors, with at least one batch")
        return self._sums

    @classmethod
    def of(cls, sums: Tensor) -> "CkaAccumulator":
        """Accumulator with errors from `sums`, of which the same layers may be left out on both axes."""
        made = cls(errors=True)
        made._sums = sums
        return made

    def matrix(self) -> Tensor:
        """Unbiased minibatch CKA of all batches so far (`normalise`); raises ValueError without batches."""
        if self._sums is None:
            raise ValueError("expected at least one batch, found none")
        return normalise(self._sums[0])

    def standard_error(self) -> Tensor:
        """Standard error of `matrix` over the samples, [layers layers] float64; 0 on the diagonal.

        Linearised from each sample's share of the three HSIC sums in a CKA, doubled since a sample is on both
        sides of every pair. A little too large for batches of a few samples. NaN where CKA is NaN.
        """
        hsic, cross, mixed, own = self.sums()
        value, total = normalise(hsic), hsic.diagonal()
        scale = torch.where(total > 0, total, 1.0)
        mixed = mixed / scale[:, None] / (scale[:, None] * scale[None, :]).sqrt()
        own = own / (scale[:, None] * scale[None, :])
        alone = own.diagonal()[:, None] + own.diagonal()[None, :]
        variance = cross / (scale[:, None] * scale[None, :])
        variance = variance - value * (mixed + mixed.mT) + value.square() * (alone + 2 * own) / 4
        # A matrix product may round its two triangles differently.
        variance = (variance + variance.mT) / 2
        return torch.where(value.isnan(), torch.nan, variance.clamp_min(0).sqrt().fill_diagonal_(0.0))


def normalise(hsic: Tensor) -> Tensor:
    """CKA [layers layers], float64, from HSIC sums: each entry over the root of its two diagonal entries.

    It is 1 on the diagonal. The unbiased estimator may be slightly below 0 or above 1. NaN if one of the two
    layers does not vary over the samples.
    """
    own = hsic.diagonal().to(torch.float64)
    defined = (own > 0)[:, None] & (own > 0)[None, :]
    root = torch.where(own > 0, own, 1.0).sqrt()
    return torch.where(defined, hsic.to(torch.float64) / (root[:, None] * root[None, :]), torch.nan)


def _moments(grams: Tensor, hsic: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sums over samples of products of their shares d of HSIC: d_ab d_ab, d_ab d_aa, d_aa d_bb."""
    layers, n = grams.shape[:2]
    cross, mixed = torch.zeros_like(hsic), torch.zeros_like(hsic)
    shares = []
    step = max(1, SHARES // layers**2)
    for start in range(0, n, step):
        rows = grams[:, start : start + step].transpose(0, 1)
        share = 2 * (torch.bmm(rows, rows.mT).to(torch.float64) / (n - 3) - hsic) / n
        alone = share.diagonal(dim1=1, dim2=2)
        cross += share.square().sum(0)
        mixed += (share * alone[:, :, None]).sum(0)
        shares.append(alone)
    alone = torch.cat(shares)
    return cross, mixed, alone.T @ alone
