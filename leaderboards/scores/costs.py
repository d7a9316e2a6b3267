"""What layers cost, from the records of the task ``cost``: one device at a time."""

from collections.abc import Sequence

import pandas as pd

from leaderboards.scores.frames import is_cost, newest
from zoo.errors import InputError

UP_TO = ("ms", "parameters", "gflops", "dim")
"""Numbers of a layer that a choice looks at."""

LAYER_COSTS = ["backbone", "input_size", "layer", *UP_TO]


def devices(records: pd.DataFrame) -> tuple[str, ...]:
    """Names of the devices on which costs were measured, the latest first."""
    rows = records[is_cost(records)]
    latest = rows.groupby("dataset")["date"].max() if len(rows) else pd.Series(dtype=object)
    return tuple(sorted(map(str, latest.index), key=lambda name: (str(latest[name]), name), reverse=True))


def find_device(records: pd.DataFrame, wanted: str | None) -> str | None:
    """The device whose costs are meant: the latest, or the one of a kind or part of a name; None without any.

    Raises:
        InputError: Costs were measured, but on no such device.
    """
    names = devices(records)
    if not names or wanted is None:
        return names[0] if names else None
    rows = records[is_cost(records)]
    kinds = dict(zip(rows["dataset"], rows["device"], strict=True))
    for name in names:
        if wanted in (name, kinds[name]) or wanted.lower() in name.lower():
            return name
    raise InputError(f"no cost was measured on {wanted!r}; it was on {', '.join(names)}")


def layer_costs(records: pd.DataFrame, device: str | None) -> pd.DataFrame:
    """What each block costs on a device: columns `LAYER_COSTS`, NaN where a number is not there."""
    rows = records[is_cost(records) & (records["dataset"] == device)]
    rows = newest(rows[(rows["tap"] == "block") & (rows["layer"] >= 1) & rows["metric"].isin(UP_TO)])
    if rows.empty:
        return pd.DataFrame(columns=LAYER_COSTS)
    wide = rows.pivot_table(index=LAYER_COSTS[:3], columns="metric", values="value")
    return wide.reindex(columns=list(UP_TO)).reset_index()[LAYER_COSTS]


def without_cost(rows: pd.DataFrame) -> Sequence[str]:
    """Backbones of which some candidates have no time."""
    return sorted({str(name) for name in rows.loc[rows["ms"].isna(), "backbone"]})


def pareto_front(rows: pd.DataFrame, cost: str = "ms") -> pd.DataFrame:
    """Rows above which none scores that costs no more, the cheapest first.

    Of equal costs the highest score counts, of equal scores the cheapest; rows without a cost or a score are
    left out.

    Args:
        rows: A column ``value``, and the cost's, among others.
        cost: Name of the cost.
    """
    rows = rows[rows[cost].notna() & rows["value"].notna()]
    rows = rows.sort_values([cost, "value"], ascending=[True, False], kind="stable")
    before = rows["value"].astype(float).cummax().shift(fill_value=float("-inf"))
    return rows[rows["value"] > before]
