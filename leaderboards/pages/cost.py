"""A suite's page of costs: what its backbones take on each device that they were measured on."""

import math

import pandas as pd

from leaderboards.choices.analyses import Analysis, analyses_of
from leaderboards.choices.gaps import empty_analyses
from leaderboards.choices.selection import BoardBackbone, backbones_of, newest
from leaderboards.display import cost_name, count_text, fixed, ms_text
from leaderboards.pages.inside.tables import inside_frame
from leaderboards.pages.notation import said
from leaderboards.pages.page import gap_blocks
from leaderboards.pages.provenance import provenance_blocks
from leaderboards.pages.wording import COSTS_NOTE, COSTS_UP_TO
from tasks.analyses.drawings.evidence import by_layer
from tasks.blocks import Block, Heading, Numbers, Page, Table

MEGABYTE = 1e6

_TIMES = {"ms": "Milliseconds of one image", "ms-batch": "Milliseconds an image, at the best batch"}


def cost_page(costs: pd.DataFrame, suite: str) -> Page:
    """The costs of one suite.

    Args:
        costs: Its records of the task ``cost``, at least one.
        suite: Name of the suite.
    """
    own = newest(costs)
    blocks: list[Block] = [said(COSTS_NOTE)]
    for one in analyses_of(own):
        blocks += _device_blocks(one.rows(own), one)
    name = cost_name(suite)
    blocks += provenance_blocks(own, Numbers(inside_frame(own, suite), name))
    blocks += gap_blocks(empty_analyses(own))
    return Page(name, f"What the backbones cost: {suite}", tuple(blocks))


def _device_blocks(rows: pd.DataFrame, one: Analysis) -> list[Block]:
    """What backbones cost on one device: each as a whole, and up to each layer."""
    rows = rows[rows["value"].notna()]
    if rows.empty:
        return []
    device = one.dataset
    blocks: list[Block] = [
        Heading(2, f"On {device}"),
        Table(whole_table(rows), caption=f"Each backbone as a whole on {device}"),
    ]
    for metric, title in _TIMES.items():
        own = rows[rows["metric"] == metric]
        caption = f"{title}, up to each layer, on {device}"
        blocks += [
            said(COSTS_UP_TO, title=title),
            Table(up_to_table(own), caption=caption),
        ]
    return blocks


def whole_table(rows: pd.DataFrame) -> pd.DataFrame:
    """What each backbone costs as a whole, as text; a row a backbone.

    Args:
        rows: Records of one device that have a number.
    """
    return pd.DataFrame([_whole(rows[rows["backbone"] == one.name], one) for one in backbones_of(rows)])


def _whole(rows: pd.DataFrame, backbone: BoardBackbone) -> dict[str, str]:
    whole, last = (rows[rows["layer"] == layer] for layer in (-1, backbone.depth))
    found = dict(zip(whole["metric"], whole["value"].astype(float), strict=True))
    dims = last.loc[(last["metric"] == "dim") & (last["tap"] == "block"), "value"]
    dim = float(dims.iloc[0]) if len(dims) else math.nan
    peak = found.get("peak-memory", math.nan) / MEGABYTE
    return {
        "backbone": backbone.label,
        "images/s": fixed(found.get("images-per-second", math.nan), 0),
        "at batch": fixed(found.get("best-batch", math.nan), 0),
        "largest batch": fixed(found.get("largest-batch", math.nan), 0),
        "latency, ms": ms_text(found.get("latency", math.nan)),
        "peak memory, MB": fixed(peak, 0 if peak >= 100 else 1),
        "weights": count_text(found.get("parameters", math.nan)),
        "GFLOPs": _three(found.get("gflops", math.nan)),
        "dim": fixed(dim, 0),
        "bytes a vector": fixed(4 * dim, 0),
        "GB a million vectors": fixed(4 * dim / 1000, 2),
    }


def up_to_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Times up to each block, as text; a row a backbone.

    Args:
        rows: Records of one device and metric that have a number.
    """
    rows = rows[rows["tap"] == "block"]
    layers = sorted({int(layer) for layer in rows["layer"]})
    body = []
    for one in backbones_of(rows):
        times = dict(by_layer(rows[rows["backbone"] == one.name]))
        cells = {str(layer): ms_text(times.get(layer, math.nan)) for layer in layers}
        body.append({"backbone": one.label} | cells)
    return pd.DataFrame(body)


def _three(value: float) -> str:
    """Three digits that count; "" where there is no number."""
    return "" if math.isnan(value) else f"{value:.3g}"
