"""Agreement of clusters and classes from many contingency tables at once, with weights for counts."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from tasks.metrics.arrays import Floats

LEAST_INFORMATION = 1e-12  # mutual information below which it is none but rounding


@dataclass(frozen=True, slots=True)
class Contingency:
    """R contingency tables whose cells in use are the same.

    Attributes:
        cells: [cells R] weight of each cell in use, ordered by cluster.
        first: [clusters] place of each cluster's first cell.
        classes: [classes R] weight of each class.
    """

    cells: Floats
    first: NDArray[np.intp]
    classes: Floats


def agreement(index: Literal["purity", "NMI", "ARI"], tables: Contingency) -> Floats:
    """Index of each table, a fraction as in ``tasks.metrics.clustering``: [R]. NaN for a table of no weight.

    NMI is over the arithmetic mean of the entropies. A weight counts as so many items.
    """
    total = tables.classes.sum(axis=0)
    result = np.full(len(total), np.nan)
    kept = total > 0
    if kept.any():
        if not kept.all():
            tables = Contingency(tables.cells[:, kept], tables.first, tables.classes[:, kept])
        result[kept] = {"purity": _purity, "NMI": _nmi, "ARI": _ari}[index](tables, total[kept])
    return result


def _purity(tables: Contingency, total: Floats) -> Floats:
    return np.asarray(np.maximum.reduceat(tables.cells, tables.first, axis=0).sum(axis=0) / total)


def _nmi(tables: Contingency, total: Floats) -> Floats:
    clusters = np.add.reduceat(tables.cells, tables.first, axis=0)
    joint, row, column = (
        np.log(total) - xlogy(part, part).sum(axis=0) / total
        for part in (tables.cells, clusters, tables.classes)
    )
    information = row + column - joint
    single = ((clusters > 0).sum(axis=0) == 1) & ((tables.classes > 0).sum(axis=0) == 1)
    result = np.divide(
        2 * information, row + column, out=np.zeros_like(total), where=information > LEAST_INFORMATION
    )
    return np.where(single, 1.0, result)


def _ari(tables: Contingency, total: Floats) -> Floats:
    clusters = np.add.reduceat(tables.cells, tables.first, axis=0)
    both, row, column = ((part**2).sum(axis=0) for part in (tables.cells, clusters, tables.classes))
    # ordered pairs of items that are together in both, in one of the two, and in neither
    together, split, merged = both - total, row - both, column - both
    apart = total**2 - row - column + both
    scale = (together + split) * (split + apart) + (together + merged) * (merged + apart)
    result = np.divide(
        2 * (together * apart - split * merged), scale, out=np.ones_like(total), where=scale != 0
    )
    return np.where((split == 0) & (merged == 0), 1.0, result)
