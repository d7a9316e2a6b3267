"""The short form of the simulation behind docs/protocols.md; limits: its aims and three standard errors."""

import re

import numpy as np

from tests import simulate_uncertainty


def numbers(lines, columns):
    """The last cells of the rows of a table."""
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")][2:]
    return np.array([[float(cell) for cell in row[-columns:]] for row in rows])


def test_the_short_simulation_keeps_the_promises():
    size = simulate_uncertainty.QUICK
    tables = re.split(r"\n\n(?=\w)", "\n".join(simulate_uncertainty.report(size)))
    coverage, rows, columns, power = (
        numbers(table.split("\n"), count)
        for table, count in zip(
            tables, (len(size.shares), len(size.rivals), len(size.rivals), 3), strict=True
        )
    )
    assert coverage.shape == (6, 3)
    assert coverage.min() >= 100 * (0.93 - 3 * np.sqrt(0.93 * 0.07 / size.samples))
    assert rows.shape == (7, 2)
    assert rows[:-1].max() <= 100 * (0.06 + 3 * np.sqrt(0.06 * 0.94 / size.samples))
    assert columns.shape == (2, 2)
    assert max(rows[-1].max(), columns.max()) <= 100 * (0.06 + 3 * np.sqrt(0.06 * 0.94 / size.few))
    assert (power[:, :-1] <= power[:, 1:]).all()
    assert power[1::2, 1:].min() > 90  # 2,000 items tell five points
