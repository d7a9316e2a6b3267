"""Costs of layers, from the records of the task ``cost``: one device at a time."""

import shlex
from collections.abc import Mapping

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Code, Text
from layerboard.tasks.framework.registry import DISTURBED
from layerboard.tasks.framework.transforms import BYTES
from layerboard.zoo.errors import InputError

UP_TO = ("ms", "parameters", "gflops", "dim")  # costs of a layer that a choice considers
VECTOR = ["backbone", "layer", "pooling", "transform"]  # identity of a vector; no transform means float32
# ``timed_at``: the view size at which ``ms`` and ``gflops`` of an image are; "" for the network's own input
# size in records that do not say it
LAYER_COSTS = ["backbone", "layer", "timed_at", *UP_TO, "tokens", "disturbed"]


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
    """Costs of each block on a device at each view size, from a board's records: `LAYER_COSTS`.

    NaN if missing. Of each block its network's own input size comes first.
    """
    rows = costs[(costs["dataset"] == device) & (costs["tap"] == "block") & (costs["layer"] >= 1)]
    rows = rows[rows["metric"].isin([*UP_TO, "tokens"])]
    if rows.empty:
        return pd.DataFrame(columns=LAYER_COSTS)
    rows = rows.assign(timed_at=_view_sizes(rows), other=~is_own_size(rows))
    keys = ["backbone", "layer", "other", "timed_at"]
    wide = rows.pivot_table(index=keys, columns="metric", values="value").reset_index()
    wide = wide.reindex(columns=[*keys, *UP_TO, "tokens"])
    same = ["parameters", "dim"]  # at every size, and measured at one
    wide[same] = wide.groupby(["backbone", "layer"])[same].transform("first")
    noisy = _disturbed(costs, device)
    sizes = zip(wide["backbone"], wide["timed_at"], strict=True)
    return wide.assign(disturbed=[size in noisy for size in sizes])[LAYER_COSTS]


def with_costs(rows: pd.DataFrame, costs: pd.DataFrame) -> pd.DataFrame:
    """Rows of blocks with their costs (`LAYER_COSTS`) at the ``view_size`` that a task showed.

    If that was not measured, or is not known, they are those at the network's own input size; ``timed_at``
    says which.
    """
    own = costs.drop_duplicates("backbone").set_index("backbone")["timed_at"].to_dict()
    measured = {*zip(costs["backbone"], costs["timed_at"], strict=True)}
    places = zip(rows["backbone"], rows["view_size"], strict=True)
    sizes = [size if (name, size) in measured else own.get(name, "") for name, size in places]
    rows = rows.drop(columns=["timed_at"], errors="ignore").assign(timed_at=sizes)
    kinds = {"backbone": str, "layer": int, "timed_at": str}  # also of no rows
    rows = _of_kinds(rows, kinds).merge(_of_kinds(costs, kinds), on=[*kinds], how="left")
    rows = _of_kinds(rows, {name: float for name in (*UP_TO, "tokens") if name in rows})
    return rows.assign(disturbed=rows["disturbed"].eq(other=True))


def _of_kinds(rows: pd.DataFrame, kinds: Mapping[str, type]) -> pd.DataFrame:
    """Rows with some columns of these kinds; for few rows faster than `astype` of the frame."""
    return rows.assign(**{name: rows[name].astype(kind) for name, kind in kinds.items()})


def is_own_size(costs: pd.DataFrame) -> "pd.Series[bool]":
    """Which records of costs are of an image at the network's own input size, or do not say its size."""
    own = costs["input_size"].astype(str)
    return (_view_sizes(costs) == "") | (costs["pooling"] == own + " x " + own)


def _view_sizes(costs: pd.DataFrame) -> "pd.Series[str]":
    """The view size of each record of costs; "" if it does not say one."""
    sizes = costs["pooling"].astype(str)
    return sizes.where(sizes.str.match(r"\d+ x \d+"), "")


def bytes_of(compressed: pd.DataFrame) -> dict[tuple[str, int, str, str], float]:
    """Bytes of the compressed vectors of a board's records, and of the same in float32."""
    packed, whole = (compressed[compressed["metric"] == metric] for metric in BYTES)
    rows = pd.concat([packed, whole.assign(transform="")])
    keys = zip(*(rows[name].tolist() for name in VECTOR), strict=True)
    return dict(zip(keys, rows["value"].astype(float), strict=True))


def _disturbed(costs: pd.DataFrame, device: str | None) -> set[tuple[str, str]]:
    """Backbones and view sizes whose times on a device other work disturbed."""
    rows = costs[(costs["dataset"] == device) & costs["metric"].isin(DISTURBED)]
    rows = rows[rows["value"] > rows["metric"].map(DISTURBED).astype(float)]
    waited = {*rows.loc[rows["metric"] == "waiting", "backbone"]}  # which is measured for all sizes together
    every = costs[(costs["dataset"] == device) & costs["backbone"].isin(waited)]
    rows = pd.concat([rows, every])
    return {*zip(rows["backbone"], _view_sizes(rows), strict=True)}


def disturbed_texts(costs: pd.DataFrame, device: str | None) -> list[Text]:
    """One sentence on the backbones whose times on a device other work disturbed; none without such."""
    names = sorted({name for name, _ in _disturbed(costs, device)})
    again = Code(f"layerboard run --tasks cost --again --backbones {shlex.join(names)}")
    start = f"Other work on the machine disturbed the times of {', '.join(names)} on {device}, which may be "
    end = " measures them again, best while nothing else runs."
    return [Text((f"{start}too long: ", again, end))] if names else []


def disturbed_notes(costs: pd.DataFrame, device: str | None) -> list[str]:
    """The sentence of `disturbed_texts` for a terminal."""
    pieces = (text.pieces for text in disturbed_texts(costs, device))
    return ["".join(each if isinstance(each, str) else f"`{each.text}`" for each in text) for text in pieces]
