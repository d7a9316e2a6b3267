"""What the random floor reaches: the mean and the spread of its draws."""

from statistics import mean, stdev

import pandas as pd

from leaderboards.choices.selection import COLUMN, candidates, is_floor, score_rows


def floor_scores(records: pd.DataFrame) -> pd.DataFrame:
    """Mean, standard deviation (of a sample) and number of the random floor's draws for every metric.

    Returns:
        Columns backbone, task, dataset, protocol, data, metric, pooling, primary, mean, deviation, draws.
    """
    return draws_of(score_rows(records))


def draws_of(rows: pd.DataFrame) -> pd.DataFrame:
    """What `floor_scores` gives, of rows that are scores already."""
    keys = ["backbone", *COLUMN, "pooling", "primary"]
    draws: dict[tuple[str | bool, ...], list[float]] = {}
    rows = rows[is_floor(rows)]
    rows = candidates(rows) if len(rows) else rows
    for *key, value in rows[[*keys, "value"]].itertuples(index=False, name=None):
        draws.setdefault(tuple(key), []).append(float(value))
    body = [
        (*key, mean(values), stdev(values) if len(values) > 1 else float("nan"), len(values))
        for key, values in sorted(draws.items())
    ]
    return pd.DataFrame(body, columns=[*keys, "mean", "deviation", "draws"])
