"""The short form of the simulation of docs/explanation/simulations.md.

Limits are what it promises, give or take three standard errors.
"""

import re

import numpy as np
import pytest

from workshop.simulations import uncertainty


def numbers(lines, columns):
    """The last cells of the rows of a table."""
    rows = [line[2:-2].split(" | ") for line in lines if line.startswith("|")][2:]
    return np.array([[float(cell or "nan") for cell in row[-columns:]] for row in rows])


def within(limit, samples):
    """A limit in percent and three standard errors of a share of so many samples."""
    return 100 * (limit + 3 * np.sqrt(limit * (1 - limit) / samples))


@pytest.mark.slow  # thousands of draws, of which fewer would show nothing
def test_the_short_simulation_keeps_the_promises():
    size = uncertainty.QUICK
    tables = re.split(r"\n\n(?=\w)", "\n".join(uncertainty.promises(size)))
    columns = [len(size.shares), 2, len(uncertainty.AUROCS), len(uncertainty.GOODNESS), 4, 2]
    columns += [*[4] * 5, 2, 4, 6, 3, 3, 3, 2, 1, 2]
    parts = [numbers(table.split("\n"), count) for table, count in zip(tables, columns, strict=True)]
    coverage, means, ranks, predictions, folds, shots, *units = parts[:-8]
    kmeans, best, groups, cheapest, failures, ranges, resolved, enough = parts[-8:]
    least = 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.samples))
    assert coverage.shape == (6, 3)
    assert min(coverage.min(), means[:, 0].min(), ranks.min(), shots.min()) >= least
    assert predictions.min() >= 100 * (0.89 - 3 * np.sqrt(0.89 * 0.11 / size.samples))
    assert folds.shape == (6, 4)
    assert folds[:, :2].min() >= 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.folds))
    assert folds[:, 2].max() <= within(0.06, size.folds)
    assert means[:, 1].max() <= within(0.06, size.samples)
    *few, alignment = units
    for cells in few:
        covered, _, outside, differ = cells.T
        assert covered.min() >= 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.units))
        assert outside.max() == 0
        assert differ.max() <= within(0.06, size.units)
    assert alignment[:, 0].min() >= 100 * (0.87 - 3 * np.sqrt(0.87 * 0.13 / size.units))
    assert kmeans.shape == (2, 4)
    assert kmeans.max() <= within(0.07, size.few)
    assert best.shape == (11, 6)
    assert best[:, :2].max() <= within(0.05, size.layers)
    assert best[:, 2:4].max() <= within(0.025, size.layers)
    assert best[:, 4].max() <= within(0.06, size.layers)
    assert np.nanmin(best[:, 5]) > 10  # layers that are worse by 5 to 10 points, of 100 images
    assert groups.shape == (4, 3)
    assert groups.max() <= within(0.05, size.layers)
    assert cheapest.shape == (4, 3)
    assert cheapest[:, 1].max() <= within(0.025, size.few)
    assert failures.shape == (18, 3)
    assert failures[:12].max() <= within(0.05, size.few)  # one of others fails, too
    assert ranges.shape == (7, 2)
    assert ranges[:, 0].min() >= 100 * (0.95 - 3 * np.sqrt(0.95 * 0.05 / size.ordered))
    assert resolved.min() >= 100 * (0.8 - 3 * np.sqrt(0.8 * 0.2 / size.ordered))
    assert enough[:, 0].min() >= 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.ordered))
