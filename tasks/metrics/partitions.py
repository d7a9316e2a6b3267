"""Agreement of clusters with classes: purity, NMI and ARI, also for many weighted tables at once.

scikit-learn, whose import takes a second, is imported where it scores: what is read from records needs none.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from layerboard.tasks.metrics.arrays import Floats, Integers


def purity(classes: Integers, clusters: Integers) -> float:
    """Share of at least one sample that belongs to the most frequent class of its cluster, in (0, 1].

    Source: Manning et al., Introduction to Information Retrieval, section 16.3.
    """
    return float(_table(clusters, classes)[0].max(axis=1).sum() / len(classes))


def nmi(classes: Integers, clusters: Integers) -> float:
    """Mutual information divided by the mean of the two entropies, in [0, 1]."""
    from sklearn.metrics import normalized_mutual_info_score

    return float(normalized_mutual_info_score(classes, clusters, average_method="arithmetic"))


def ari(classes: Integers, clusters: Integers) -> float:
    """Adjusted Rand index: 1 for equal partitions, 0 expected for random ones, at least -0.5.

    Source: Hubert and Arabie, Comparing Partitions, 1985.
    """
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(classes, clusters))


AGREEMENTS = {"purity": purity, "NMI": nmi, "ARI": ari}
"""Measures of agreement between clusters and classes, by name; the primary one first."""


def _table(clusters: Integers, classes: Integers) -> tuple[Floats, Integers, Integers]:
    """Contingency table [clusters classes], and the row and the column of each item."""
    row, column = (np.unique(names, return_inverse=True)[1] for names in (clusters, classes))
    table = np.zeros((row.max() + 1, column.max() + 1))
    np.add.at(table, (row, column), 1)
    return table, row, column


LEAST_INFORMATION = 1e-12  # mutual information below this is rounding error


@dataclass(frozen=True, slots=True)
class Contingency:
    """R contingency tables with the same non-empty cells."""

    cells: Floats  # [cells R] weight of each non-empty cell, ordered by cluster
    first: NDArray[np.intp]  # [clusters] index of each cluster's first cell
    classes: Floats  # [classes R] weight of each class


def agreement(index: Literal["purity", "NMI", "ARI"], tables: Contingency) -> Floats:
    """Purity, NMI or ARI of each table, as a fraction: [R]; NaN for a table without weight."""
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
    # ordered pairs of items that are together in both partitions, in one of them, and in neither
    together, split, merged = both - total, row - both, column - both
    apart = total**2 - row - column + both
    scale = (together + split) * (split + apart) + (together + merged) * (merged + apart)
    result = np.divide(
        2 * (together * apart - split * merged), scale, out=np.ones_like(total), where=scale != 0
    )
    return np.where((split == 0) & (merged == 0), 1.0, result)


def slopes(index: Literal["purity", "NMI", "ARI"], classes: Integers, clusters: Integers) -> Floats:
    """Derivative of an index with respect to the weight of each item, at weights of 1: [items].

    For purity, the first of several equally frequent classes of a cluster counts.
    """
    table, row, column = _table(clusters, classes)
    items = float(len(classes))
    if index == "purity":
        hits = table.argmax(axis=1)[row] == column
        return np.asarray((hits - hits.mean()) / items, np.float64)
    cell, cluster, label = table[row, column], table.sum(axis=1)[row], table.sum(axis=0)[column]
    if index == "NMI":
        gain, row_surprise, column_surprise = (
            np.log(items * cell / (cluster * label)),
            *(np.log(items / count) for count in (cluster, label)),
        )
        entropies = row_surprise.mean() + column_surprise.mean()
        if entropies == 0:
            return np.zeros(len(classes))
        ratio = 2 * gain.mean() / entropies
        return np.asarray((2 * gain - ratio * (row_surprise + column_surprise)) / (entropies * items))
    # the sums of ``_ari`` and their derivatives with respect to the weight of an item
    both, rows, columns = cell.sum(), cluster.sum(), label.sum()
    together, split, merged = both - items, rows - both, columns - both
    apart = items**2 - rows - columns + both
    to_together, to_split, to_merged = 2 * cell - 1, 2 * (cluster - cell), 2 * (label - cell)
    to_apart = 2 * (items - cluster - label + cell)
    scale = (together + split) * (split + apart) + (together + merged) * (merged + apart)
    if scale == 0:
        return np.zeros(len(classes))
    value = 2 * (together * apart - split * merged)
    to_value = 2 * (to_together * apart + together * to_apart - to_split * merged - split * to_merged)
    to_scale = (to_together + to_split) * (split + apart) + (together + split) * (to_split + to_apart)
    to_scale += (to_together + to_merged) * (merged + apart) + (together + merged) * (to_merged + to_apart)
    return np.asarray((to_value * scale - value * to_scale) / scale**2, np.float64)
