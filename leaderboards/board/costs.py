"""Costs of layers, from the records of the task ``cost``: one device at a time."""

import shlex

import pandas as pd

from layerboard.tasks.framework.registry import DISTURBED
from layerboard.tasks.framework.transforms import BYTES
from layerboard.zoo.errors import InputError

UP_TO = ("ms", "parameters", "gflops", "dim")  # costs of a layer that a choice considers
DISTURBANCE = (
    "Other work on the machine disturbed the times of {names} on {device}, which are too long: `{again}` "
    "measures them again, best while nothing else runs."
)
VECTOR = ["backbone", "layer", "pooling", "transform"]  # identity of a vector; no transform means float32
Vector = tuple[str, int, str, str]
LAYER_COSTS = ["backbone", "layer", *UP_TO]


def find_measured_device(costs: pd.DataFrame, wanted: str | None = None) -> str | None:
    """The latest device, or one by kind or part of its name; None if nothing was measured.

    Raises InputError if costs exist but none match ``wanted``.
    """
    dates = dict(costs.groupby("dataset")["date"].max().astype(str).items())
    names = sorted(map(str, dates), key=lambda name: (dates[name], name), reverse=True)
    kinds = dict(zip(costs["dataset"], costs["device"], strict=True))
    for name in names:
        if wanted is None or wanted in (name, kinds[name]) or wanted.lower() in name.lower():
            return name
    if names:
        raise InputError(f"no cost was measured on {wanted!r}; it was on {', '.join(names)}")
    return None


def layer_costs(costs: pd.DataFrame, device: str | None) -> pd.DataFrame:
    """Costs of each block on a device, from a board's records: `LAYER_COSTS`, NaN if missing."""
    rows = costs[(costs["dataset"] == device) & (costs["tap"] == "block") & (costs["layer"] >= 1)]
    rows = rows[rows["metric"].isin(UP_TO)]
    if rows.empty:
        return pd.DataFrame(columns=LAYER_COSTS)
    wide = rows.pivot_table(index=LAYER_COSTS[:2], columns="metric", values="value")
    return wide.reindex(columns=list(UP_TO)).reset_index()[LAYER_COSTS]


def bytes_of(compressed: pd.DataFrame) -> dict[Vector, float]:
    """Bytes of the compressed vectors of a board's records, and of the same in float32."""
    packed, whole = (compressed[compressed["metric"] == metric] for metric in BYTES)
    rows = pd.concat([packed, whole.assign(transform="")])
    keys = zip(*(rows[name].tolist() for name in VECTOR), strict=True)
    return dict(zip(keys, rows["value"].astype(float), strict=True))


def disturbances(costs: pd.DataFrame, device: str | None) -> list[dict[str, str]]:
    """Arguments of `DISTURBANCE` for backbones whose times on a device other work disturbed, if any."""
    rows = costs[(costs["dataset"] == device) & costs["metric"].isin(DISTURBED)]
    names = sorted(set(rows.loc[rows["value"] > rows["metric"].map(DISTURBED), "backbone"]))
    again = f"layerboard run --tasks cost --again --backbones {shlex.join(names)}"
    return [{"names": ", ".join(names), "device": str(device), "again": again}] if names else []


def pareto_front(rows: pd.DataFrame, cost: str = "ms") -> pd.DataFrame:
    """The Pareto front: rows that no other beats in ``value`` at the same or less cost, the cheapest first.

    Of equal costs the highest score counts, of equal scores the cheapest.
    """
    rows = rows[rows[cost].notna() & rows["value"].notna()]
    rows = rows.sort_values([cost, "value"], ascending=[True, False], kind="stable")
    return rows[rows["value"] > rows["value"].astype(float).cummax().shift(fill_value=float("-inf"))]
