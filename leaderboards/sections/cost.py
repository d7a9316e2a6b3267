"""A suite's page of costs: those of its backbones on each measured device."""

import math
from collections import defaultdict
from collections.abc import Mapping

import pandas as pd

from layerboard.leaderboards.blocks.blocks import Block, Heading, Page, Plot, Table, said, slug
from layerboard.leaderboards.blocks.display import bytes_text, count_text, fixed, ms_text
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.costs import disturbed_texts, is_own_size
from layerboard.leaderboards.board.frames import BoardBackbone, backbones_of
from layerboard.leaderboards.sections.provenance import provenance_blocks
from layerboard.leaderboards.sections.tables import cell_table
from layerboard.tasks.framework.registry import DISTURBED
from layerboard.zoo.spec import entry_name

MEGABYTE = 1e6

NOTE = """\
Times are those **without disturbance on the named machine**, measured while the run computed nothing else:
they compare backbones and depths there, and differ on other machines. One forward pass is timed at every
layer; each part between two layers counts with its shortest time of several passes, and the sum up to a layer
is the cost of the backbone cut after it. Spread is by how much the lower quartile of the passes is longer;
waiting is the share of the time in which threads waited for a processor. Above {spread:g} % (spread) or
{waiting:g} % (waiting), other work disturbed the times. Images are on the device already; decoding and
resizing are not included. GFLOPs count additions and multiplications separately. Peak memory is that of a
forward pass at the best batch size, weights included: as reported by the allocator of a GPU; on a CPU, the
tensors alive at once. Each backbone as a whole is shown images of its own input size. Tasks may show them at
other sizes, in pixels; each size has a table, and what is said of a task is at its size."""

_OVER_SIZE = {"images-per-second": "Images a second", "largest-batch": "Largest batch"}
_TIMES = {"ms": "Milliseconds of one image", "ms-batch": "Milliseconds per image, at the best batch size"}


def cost_page(board: Board) -> Page:
    """The costs of one suite, which must have some."""
    costs, title = board.costs, f"What the backbones cost: {board.suite}"
    blocks: list[Block] = [said(NOTE.format(**DISTURBED))]
    for device, rows in ((group.dataset, group.rows[group.rows["value"].notna()]) for group in costs.groups):
        if rows.empty:
            continue
        whole = Table(whole_table(rows), caption=f"Each backbone as a whole on {device}")
        blocks += [Heading(2, f"On {device}"), whole, *size_curves(rows, device)]
        blocks += disturbed_texts(rows, device)
        own = is_own_size(rows)
        parts = [(what, rows[own & (rows["metric"] == metric)]) for metric, what in _TIMES.items()]
        at_sizes = rows[~own & (rows["metric"] == "ms")].groupby("pooling")
        parts += [(f"{_TIMES['ms']} of {size} pixels", part) for size, part in at_sizes]
        for what, part in parts:
            table = Table(up_to_table(part, costs.labels), caption=f"{what}, up to each layer, on {device}")
            blocks += [said("{what}, up to each layer:", what=what), table]
    return Page(costs.page, title, (*blocks, *provenance_blocks(costs)))


def size_curves(rows: pd.DataFrame, device: str) -> list[Plot]:
    """Plots of what the backbones that were measured at several input sizes reach at each of them.

    Rows are of one device and have numbers.
    """
    whole = rows[is_own_size(rows) & (rows["layer"] == -1)]
    whole = whole.assign(series=whole["backbone"].map(entry_name)).sort_values(["series", "input_size"])
    plots = []
    for metric, title in _OVER_SIZE.items():
        points = whole[whole["metric"] == metric]
        points = points[points.groupby("series")["input_size"].transform("nunique") > 1]
        if len(points):
            frame = points.assign(x=points["input_size"], y=points["value"])[["series", "x", "y"]]
            named = f"{title}, over the input size, on {device}"
            plots.append(Plot(frame, "lines", named, "input size, px", title, name=slug(named)))
    return plots


def whole_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Costs of each backbone as a whole, as text; rows are of one device and have numbers."""
    rows = rows[is_own_size(rows)]
    table = pd.DataFrame([_whole(rows[rows["backbone"] == each.name], each) for each in backbones_of(rows)])
    return table if table["compiling, s"].any() else table.drop(columns="compiling, s")


def _whole(rows: pd.DataFrame, backbone: BoardBackbone) -> dict[str, str]:
    whole, last = (rows[rows["layer"] == layer] for layer in (-1, backbone.depth))
    known = zip(whole["metric"], whole["value"].astype(float), strict=True)
    costs: dict[str, float] = defaultdict(lambda: math.nan, known)
    block = last[last["tap"] == "block"].drop_duplicates("metric")
    numbers = dict(zip(block["metric"], block["value"].astype(float), strict=True))
    dim, tokens = (numbers.get(name, math.nan) for name in ("dim", "tokens"))
    peak, gflops = costs["peak-memory"] / MEGABYTE, costs["gflops"]
    return {
        "backbone": backbone.label,
        "input, px": str(rows["input_size"].iloc[0]),
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
        "a vector": bytes_text(4 * dim),
        "an image's grid": bytes_text(4 * dim * tokens),
    }


def up_to_table(rows: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Times up to each block, as text; rows are of one device and metric and have numbers."""
    rows = rows[rows["tap"] == "block"]
    places = zip(rows["backbone"], rows["layer"].astype(str), strict=True)
    cells = dict(zip(places, rows["value"].map(ms_text), strict=True))
    return cell_table(labels, map(str, sorted(set(rows["layer"]))), cells)
