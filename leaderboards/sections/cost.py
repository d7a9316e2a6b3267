"""A suite's page of costs: those of its backbones on each measured device."""

import math
from collections import defaultdict
from collections.abc import Mapping

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Page, Table, said
from layerboard.leaderboards.blocks.display import count_text, fixed, ms_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.costs import DISTURBANCE, disturbances
from layerboard.leaderboards.board.frames import BoardBackbone, backbones_of
from layerboard.leaderboards.sections.provenance import provenance_blocks
from layerboard.leaderboards.sections.tables import cell_table

MEGABYTE = 1e6

NOTE = """\
Times are those **of the fastest forward pass on the named machine**, measured while the run computed nothing
else: they compare backbones and depths there, and differ on other machines. Spread is by how much the lower
quartile of the forward passes is longer; waiting is the share of the time in which threads waited for a
processor. Above 20 % (spread) or 5 % (waiting), other work disturbed the times. One forward pass is timed at
every layer, so the time at a layer is the cost of the backbone cut after it. Images are on the device
already; decoding and resizing are not included. GFLOPs count additions and multiplications separately. Peak
memory is that of a forward pass at the best batch size, weights included: as reported by the allocator of a
GPU; on a CPU, the tensors alive at once."""

_TIMES = {"ms": "Milliseconds of one image", "ms-batch": "Milliseconds per image, at the best batch size"}


def cost_page(board: Board) -> Page:
    """The costs of one suite, which must have some."""
    costs, title = board.costs, f"What the backbones cost: {board.suite}"
    blocks: list[Block] = [said(NOTE)]
    for device in costs.groups:
        blocks += _device_blocks(device.rows, device.dataset, costs.labels)
    return Page(costs.page, title, (*blocks, *provenance_blocks(costs)))


def _device_blocks(rows: pd.DataFrame, device: str, labels: Mapping[str, str]) -> list[Block]:
    rows = rows[rows["value"].notna()]
    if rows.empty:
        return []
    whole = Table(whole_table(rows), caption=f"Each backbone as a whole on {device}")
    blocks: list[Block] = [Heading(2, f"On {device}"), whole]
    blocks += [said(DISTURBANCE, **disturbed) for disturbed in disturbances(rows, device)]
    for metric, title in _TIMES.items():
        times = up_to_table(rows[rows["metric"] == metric], labels)
        table = Table(times, caption=f"{title}, up to each layer, on {device}")
        blocks += [said("{title}, up to each layer:", title=title), table]
    return blocks


def whole_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Costs of each backbone as a whole, as text; rows are of one device and have numbers."""
    table = pd.DataFrame([_whole(rows[rows["backbone"] == each.name], each) for each in backbones_of(rows)])
    return table if table["compiling, s"].any() else table.drop(columns="compiling, s")


def _whole(rows: pd.DataFrame, backbone: BoardBackbone) -> dict[str, str]:
    whole, last = (rows[rows["layer"] == layer] for layer in (-1, backbone.depth))
    known = zip(whole["metric"], whole["value"].astype(float), strict=True)
    costs: dict[str, float] = defaultdict(lambda: math.nan, known)
    dims = last[(last["metric"] == "dim") & (last["tap"] == "block")]
    dim = float(dims["value"].iloc[0]) if len(dims) else math.nan
    peak, gflops = costs["peak-memory"] / MEGABYTE, costs["gflops"]
    return {
        "backbone": backbone.label,
        "images/s": fixed(costs["images-per-second"], 0),
        "at batch": fixed(costs["best-batch"], 0),
        "largest batch": fixed(costs["largest-batch"], 0),
        "latency, ms": ms_text(costs["latency"]),
        "spread, %": fixed(costs["spread"], 0),
        "waiting, %": fixed(costs["waiting"], 0),
        "compiling, s": fixed(costs["compiling"], 1),
        "peak memory, MB": fixed(peak, 0 if peak >= 100 else 1),
        "weights": count_text(costs["parameters"]),
        "GFLOPs": "" if math.isnan(gflops) else f"{gflops:.3g}",
        "dim": fixed(dim, 0),
        "bytes a vector": fixed(4 * dim, 0),
        "GB a million vectors": fixed(4 * dim / 1000, 2),
    }


def up_to_table(rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Times up to each block, as text; rows are of one device and metric and have numbers."""
    rows = rows[rows["tap"] == "block"]
    places = zip(rows["backbone"], rows["layer"].astype(str), strict=True)
    cells = dict(zip(places, rows["value"].map(ms_text), strict=True))
    return cell_table(labels, map(str, sorted(set(rows["layer"]))), cells)
