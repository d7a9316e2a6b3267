"""Sets of layers: what they take beside their layers alone, and beside tokens side by side; their memory."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from torch import Tensor

from perf.grids import normal, object_labels
from perf.measuring import Row, Setting, take_turns
from perf.memory import BUDGET, not_here, peak
from perf.segments import BLOCKS, NAMED, PAIRS, WIDTH, cells_and_rows, grids, labelled, remembered
from tasks.metrics.fused import nearest_of_sets
from tasks.metrics.neighbours import nearest
from tasks.metrics.propagation import Propagation
from tasks.protocols import STANDARD
from tasks.registry import config_of
from zoo.spec import Layer


def set_rows(setting: Setting) -> Iterator[Row]:
    """Three named sets, and 66 pairs, of the 12 blocks of ViT-S/16, over these blocks one by one."""
    yield from _neighbour_rows(setting)
    yield from _video_rows(setting)
    yield from _segment_rows(setting)


def set_memory_rows(setting: Setting) -> Iterator[Row]:
    """What sets take beside their layers alone in `segment`, of fresh processes, over what is stated."""
    cells, rows = cells_and_rows(setting)
    what = "memory of segment with three sets, over that of its layers and one image of unit tokens of each"
    if absent := not_here(setting, what):
        yield from absent
        return
    alone, sets = (peak("perf.segments:labelling", cells, rows, 1, *named) for named in ((), ("named",)))
    shown = 3 * 4 * len(BLOCKS) * cells * cells * WIDTH / (1 << 20)  # as shown, stacked, of length 1
    note = f"{sets:,.0f} MiB over {alone:,.0f} MiB and {shown:,.0f} MiB of tokens"
    yield Row(what, sets / (alone + shown), budget=BUDGET, note=note)


def _neighbour_rows(setting: Setting) -> Iterator[Row]:
    bank, queries = (500, 50) if setting.quick else (20_000, 500)
    k = max(config_of(STANDARD, "knn").k, *config_of(STANDARD, "knn").others)
    random = np.random.default_rng(0)
    banks, asked = (
        {layer: random.standard_normal((count, WIDTH), np.float32) for layer in BLOCKS}
        for count in (bank, queries)
    )

    def sets(chosen: Mapping[Layer, Sequence[Layer]]) -> object:
        return list(nearest_of_sets(banks, asked, chosen, k, device=setting.card))

    candidates = {
        "layers": lambda: [nearest(banks[at], asked[at], k, device=setting.card) for at in BLOCKS],
        "named": lambda: sets(NAMED),
        "pairs": lambda: sets(PAIRS),
    }
    what = f"k-NN of 3 named sets, {bank:,} x {WIDTH}, {queries:,} queries, over its 12 layers one by one"
    yield from _over_layers(setting, what, candidates)


def _over_layers(
    setting: Setting, what: str, candidates: Mapping[str, Callable[[], object]]
) -> Iterator[Row]:
    rounds = take_turns(setting, candidates, 0.25)
    yield rounds.row(what, ("named", "layers"))
    yield Row("the same of 66 pairs", rounds.ratio("pairs", "layers"))


def _video_rows(setting: Setting) -> Iterator[Row]:
    rule = config_of(STANDARD, "davis")
    height, width = (8, 10) if setting.quick else (28, 49)
    shape = (len(BLOCKS), rule.n_last_frames + 2, height, width, WIDTH)
    frames = [dict(zip(BLOCKS, of_layers, strict=True)) for of_layers in normal(shape, setting).unbind(1)]
    labels = object_labels(height, width, setting)
    first, *between, last = frames
    alone = {at: Propagation({at: grid}, labels, {at: (at,)}, rule) for at, grid in first.items()}
    named, pairs = (Propagation(first, labels, chosen, rule) for chosen in (NAMED, PAIRS))

    def layers(frame: Mapping[Layer, Tensor]) -> None:
        for layer, propagation in alone.items():
            propagation.step({layer: frame[layer]})

    steps = {"layers": layers, "named": named.step, "pairs": pairs.step}
    for frame in between:
        for step in steps.values():
            step(frame)
    what = f"DAVIS, a frame of 3 named sets, {height} x {width} x {WIDTH}, over its 12 layers one by one"
    yield from _over_layers(setting, what, {name: partial(step, last) for name, step in steps.items()})


def _segment_rows(setting: Setting) -> Iterator[Row]:
    cells, rows = cells_and_rows(setting)
    memories, grid = remembered(rows), grids(cells).to(setting.device)
    candidates = {
        "layers": lambda: labelled(memories, grid),
        "named": lambda: labelled(memories, grid, BLOCKS, [*NAMED]),
    }
    what = f"segment, an image of {cells} x {cells} cells by 3 named sets of 12 layers, {rows:,} cells each"
    rounds = take_turns(setting, candidates, 0.25)
    yield rounds.row(f"{what}, over 13 layers one by one", ("named", "layers"))
