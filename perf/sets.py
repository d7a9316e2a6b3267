"""Sets of layers: what they take beside their layers alone, and beside tokens side by side; their memory."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch

from perf.measuring import Row, Setting, take_turns
from perf.memory import BUDGET, not_here, peak
from perf.segments import LAYERS, WIDTH, Remembered, grids, labelled
from tasks.metrics.fused import nearest_of_sets
from tasks.metrics.neighbours import nearest
from tasks.metrics.propagation import Propagation, PropagationOfSets
from tasks.protocols import STANDARD
from tasks.registry import config_of
from tasks.segmentation.in_context import Memories
from tasks.sets import sets_of
from zoo.spec import Layer

BLOCKS = LAYERS[:12]
NAMED = sets_of(("last4", "quarters", "all"), 12, BLOCKS)
PAIRS = sets_of(("pairs",), 12, BLOCKS)


def set_rows(setting: Setting) -> Iterator[Row]:
    """Three named sets, and 66 pairs, of the 12 blocks of ViT-S/16, over these blocks one by one."""
    yield from _neighbour_rows(setting)
    yield from _video_rows(setting)
    yield from _segment_rows(setting)


def set_memory_rows(setting: Setting) -> Iterator[Row]:
    """What sets take beside their layers alone in `segment`, of fresh processes, over what is stated."""
    cells, rows = (14, 2_000) if setting.quick else (28, 100_000)
    what = "memory of segment with three sets, over that of its layers and one image of unit tokens of each"
    if absent := not_here(setting, what):
        yield from absent
        return
    alone, sets = (peak("perf.sets:labelling", cells, rows, count) for count in (0, len(NAMED)))
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
    device = setting.device if setting.device.type == "cuda" else None

    def sets(chosen: Sequence[Layer]) -> object:
        named = {layer_set: layer_set.members for layer_set in chosen}
        return list(nearest_of_sets(banks, asked, named, k, device=device))

    rounds = take_turns(
        {
            "layers": lambda: [
                nearest(banks[layer_set], asked[layer_set], k, device=device) for layer_set in BLOCKS
            ],
            "named": lambda: sets(NAMED),
            "pairs": lambda: sets(PAIRS),
        },
        max(1, setting.rounds // 4),
        setting.device,
    )
    what = f"k-NN of 3 named sets, {bank:,} x {WIDTH}, {queries:,} queries, over its 12 layers one by one"
    yield Row(what, rounds.ratio("named", "layers"), figures=rounds.figures())
    yield Row("the same of 66 pairs", rounds.ratio("pairs", "layers"))


def _video_rows(setting: Setting) -> Iterator[Row]:
    rule = config_of(STANDARD, "davis")
    height, width = (8, 10) if setting.quick else (28, 49)
    seeded = torch.Generator().manual_seed(0)
    frames = {
        layer: torch.randn(rule.n_last_frames + 2, height, width, WIDTH, generator=seeded).to(setting.device)
        for layer in BLOCKS
    }
    labels = torch.nn.functional.one_hot(torch.arange(height * width) % 4).float().view(height, width, -1)
    labels = labels.to(setting.device)
    first = {layer: every[0] for layer, every in frames.items()}
    last = {layer: every[-1] for layer, every in frames.items()}
    alone = {layer: Propagation(layer_set, labels, rule.heard) for layer, layer_set in first.items()}
    together = {
        name: PropagationOfSets(
            first, labels, {layer_set: layer_set.members for layer_set in chosen}, rule.heard
        )
        for name, chosen in (("named", NAMED), ("pairs", PAIRS))
    }
    for at in range(1, rule.n_last_frames + 1):
        shown = {layer: every[at] for layer, every in frames.items()}
        for layer, propagator in alone.items():
            propagator.step(shown[layer])
        for propagation in together.values():
            propagation.step(shown)

    rounds = take_turns(
        {
            "layers": lambda: [alone[layer].step(last[layer]) for layer in BLOCKS],
            "named": lambda: together["named"].step(last),
            "pairs": lambda: together["pairs"].step(last),
        },
        max(1, setting.rounds // 4),
        setting.device,
    )
    what = f"DAVIS, a frame of 3 named sets, {height} x {width} x {WIDTH}, over its 12 layers one by one"
    yield Row(what, rounds.ratio("named", "layers"), figures=rounds.figures())
    yield Row("the same of 66 pairs", rounds.ratio("pairs", "layers"))


def _segment_rows(setting: Setting) -> Iterator[Row]:
    cells, rows = (14, 2_000) if setting.quick else (28, 100_000)
    memories, grid = Memories(Remembered(rows, WIDTH), {}), grids(1, cells, WIDTH).to(setting.device)
    rounds = take_turns(
        {
            "layers": lambda: labelled(memories, grid),
            "named": lambda: labelled(memories, grid, BLOCKS, NAMED),
        },
        max(1, setting.rounds // 4),
        setting.device,
    )
    what = f"segment, an image of {cells} x {cells} cells by 3 named sets of 12 layers, {rows:,} cells each"
    yield Row(f"{what}, over 13 layers one by one", rounds.ratio("named", "layers"), figures=rounds.figures())


def labelling(cells: str, rows: str, sets: str) -> Callable[[], None]:
    """The labelling of an image by all layers, and by so many of the named sets of them."""
    grid, memories = grids(1, int(cells), WIDTH), Memories(Remembered(int(rows), WIDTH), {})

    def work() -> None:
        labelled(memories, grid)
        if int(sets):
            labelled(memories, grid, BLOCKS, NAMED[: int(sets)])

    return work
