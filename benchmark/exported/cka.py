"""CKA of exported representations of the same samples."""

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from layerboard.benchmark.exported.arrays import Array, as_floats, read_array
from layerboard.benchmark.exported.report import ScoreReport, number
from layerboard.tasks.datasets.integrity import require, require_distinct
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.sources import IMAGES
from layerboard.tasks.similarity import metric
from layerboard.tasks.similarity.metric import SMALLEST_BATCH
from layerboard.zoo.errors import InputError, in_brackets


def score_cka(features: Sequence[Path], estimator: str | None, batch_size: int | None) -> ScoreReport:
    """CKA of every representation with every other one, as fractions; raises InputError.

    Two or more arrays [n ...] have the same samples in the same order. The estimator of HSIC, which is summed
    over batches, is unbiased, the default, biased, or paper: unbiased, of Gram matrices scaled to [0, 1].
    Batches are taken in the order of the rows; a last batch of fewer than 4 is left out. Without a batch
    size, all rows are one batch, or for the paper's estimator as many as its protocol says. Computed in
    float64.
    """
    estimator = estimator or "unbiased"
    arrays = [read_array(path, mapped=True) for path in features]
    require_distinct(map(str, features), "every array once as --features")
    names = [path.stem for path in features]
    names = names if len(set(names)) == len(names) else [*map(str, features)]
    matrix, size, used = compare_arrays(arrays, features, estimator, batch_size)
    rows = dict(zip(names, matrix.tolist(), strict=True))
    undefined = [name for name, row in rows.items() if all(map(math.isnan, row))]
    left_out = len(arrays[0]) - used
    note = f"the last {left_out} rows are fewer than {SMALLEST_BATCH} and were left out"
    return ScoreReport(
        protocol=(PAPER if estimator == "paper" else STANDARD).name,
        parameters={"features": [*map(str, features)], "estimator": estimator, "batch_size": size},
        n=used,
        unit="samples",
        scores={
            name: {
                other: None if math.isnan(value) else value for other, value in zip(names, row, strict=True)
            }
            for name, row in rows.items()
        },
        tables=(
            [["CKA", *names], *([name, *(number(each, 4) for each in row)] for name, row in rows.items())],
        ),
        details={"batches": -(-used // size), "samples_left_out": left_out},
        scale="fraction",
        reason=f"within batches {' and '.join(undefined)} do not vary" if undefined else "",
        notes=(note,) if left_out else (),
    )


def compare_arrays(
    arrays: Sequence[Array], sources: Sequence[object], estimator: str, batch_size: int | None
) -> tuple[Tensor, int, int]:
    """CKA of every array with every other one, as in `score_cka`; sources name them in errors.

    Returns the matrix, the batch size (one batch is in memory at a time), and the number of compared samples;
    raises InputError.
    """
    n = _check(arrays, sources)
    config = config_of(PAPER if estimator == "paper" else STANDARD, "cka")
    size = min(batch_size or (PAPER.config_for(IMAGES).batches.size if estimator == "paper" else n), n)
    used = n if n % size >= SMALLEST_BATCH else n - n % size
    unbiased = metric.CkaAccumulator()
    biased = torch.zeros(len(arrays), len(arrays), dtype=torch.float64)
    for start in range(0, used, size):
        batch = []
        for array, source in zip(arrays, sources, strict=True):
            where = f"rows {start} to {min(start + size, n) - 1} of {source}"
            values = as_floats(array[start : start + size], where, "[n ...]", wide=True)
            batch.append(torch.from_numpy(values.copy()).flatten(1))
        if estimator == "biased":
            grams = torch.stack([metric.gram_matrix(each).flatten() / (len(each) - 1) for each in batch])
            biased += grams @ grams.T
        else:
            unbiased.add(torch.stack([metric.centred_gram(each, min_max=config.min_max) for each in batch]))
    return metric.normalise(biased) if estimator == "biased" else unbiased.matrix(), size, used


def _check(arrays: Sequence[Array], features: Sequence[object]) -> int:
    """The number of samples, which all arrays share; raises InputError."""
    require(len(arrays) >= 2, "at least two arrays as --features", len(arrays))
    for array, path in zip(arrays, features, strict=True):
        axes = f"features [n ...] of at least two axes in {path}"
        require(array.ndim > 1 and array.size, axes, in_brackets(array.shape))
        rows = f"{len(arrays[0]):,} rows in {features[0]} and {len(array):,} in {path}"
        require(len(array) == len(arrays[0]), "the same samples in all arrays", rows)
        if all((row == array[0]).all() for row in array):
            raise InputError(
                f"expected features that vary over the samples in {path}, but all rows are the same"
            )
    count, least = len(arrays[0]), f"at least {SMALLEST_BATCH} samples"
    require(count >= SMALLEST_BATCH, least, f"{count} rows in {features[0]}")
    return count
