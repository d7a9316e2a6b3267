"""The short form of the simulation of docs/explanation/simulations.md.

Limits are what it promises, give or take three standard errors.
"""

import re

import numpy as np

from tests import simulate_uncertainty


def numbers(lines, columns):
    """The last cells of the rows of a table."""
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")][2:]
    return np.array([[float(cell) for cell in row[-columns:]] for row in rows])


def within(limit, samples):
    """A limit in percent and three standard errors of a share of so many samples."""
    return 100 * (limit + 3 * np.sqrt(limit * (1 - limit) / samples))


def test_the_short_simulation_keeps_the_promises():
    size = simulate_uncertainty.QUICK
    tables = re.split(r"\n\n(?=\w)", "\n".join(simulate_uncertainty.report(size)))
    columns = (
        len(size.shares),
        2,
        len(simulate_uncertainty.AUROCS),
        len(simulate_uncertainty.GOODNESS),
        2,
        *[4] * 5,
        2,
        3,
        4,
        len(size.rivals),
        len(size.rivals),
        3,
        len(size.rivals),
    )
    coverage, means, ranks, predictions, shots, *units, losses, kmeans, rows, tables, power, apart = (
        numbers(table.split("\n"), count) for table, count in zip(tables, columns, strict=True)
    )
    least = 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.samples))
    assert coverage.shape == (6, 3)
    assert min(coverage.min(), means[:, 0].min(), ranks.min(), shots.min()) >= least
    assert predictions.min() >= 100 * (0.89 - 3 * np.sqrt(0.89 * 0.11 / size.samples))
    assert means[:, 1].max() <= within(0.06, size.samples)
    *few, alignment = units
    for cells in few:
        covered, _, outside, differ = cells.T
        assert covered.min() >= 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.units))
        assert outside.max() == 0
        assert differ.max() <= within(0.06, size.units)
    assert alignment[:, 0].min() >= 100 * (0.87 - 3 * np.sqrt(0.87 * 0.13 / size.units))
    assert losses.shape == (4, 3)
    assert losses[:, 0].max() <= within(0.05, size.samples)
    assert kmeans.shape == (2, 4)
    assert kmeans.max() <= within(0.07, size.few)
    assert rows.shape == (6, 2)
    assert rows.max() <= within(0.06, size.rows[0])
    assert tables.shape == (4, 2)
    assert tables.max() <= within(0.06, size.tables[0])
    assert (power[:, :-1] <= power[:, 1:]).all()
    assert power[1::2, 1:].min() > 90  # 2,000 items tell five points
    assert apart[:, 0].mean() > 50  # as many as are found of two backbones
