"""Statistics of claims about CKA."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from layerboard.leaderboards.claims.attention import depth_halves
from layerboard.leaderboards.claims.effects import (
    AbsentError,
    Effect,
    contrast,
    largest,
    least,
    mean_effect,
    orders,
    permuted,
)
from layerboard.leaderboards.claims.networks import Group, KnownNetwork, crossed, removed_block
from layerboard.leaderboards.claims.readings import Readings
from layerboard.tasks.framework.assess import paired_differences
from layerboard.tasks.metrics.arrays import Floats

REDUNDANT = 0.95  # CKA above which a block and the next are redundant
POINTS = 5.0  # accuracy that may lie between them
QUARTER = 1 / 4


def alike_over_sizes(readings: Readings, alone: Sequence[Group], supervised: Sequence[Group]) -> Effect:
    """CKA of last blocks of two sizes: self-supervised pairs minus supervised ones."""

    def lasts(pairs: Sequence[Group]) -> list[float]:
        return [effect.value for effect in readings.each(pairs, last)]

    def last(small: KnownNetwork, large: KnownNetwork) -> Effect:
        return mean_effect([readings.cka(small, large)[-1, -1]], "pair")

    return contrast(lasts(alone), lasts(supervised), "pairs of sizes")


def crossing(readings: Readings, networks: Sequence[Group]) -> Effect:
    """CKA on the other diagonal against cells as far from the main one: an X."""

    def of(network: KnownNetwork) -> Effect:
        cka = _of_itself(readings, network)
        return permuted(*_exchanged(cka, _cross_weights(network.depth)), f"{network.depth} layers")

    return least(readings.each(networks, of))


def crossing_by_size(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """The same contrast, larger network minus smaller."""

    def of(small: KnownNetwork, large: KnownNetwork) -> Effect:
        (before, drawn), (after, redrawn) = (
            _exchanged(_of_itself(readings, network), _cross_weights(network.depth), stream)
            for stream, network in enumerate((small, large))
        )
        return permuted(after - before, redrawn - drawn, f"{small.depth} + {large.depth} layers")

    return least(readings.each(pairs, of))


def _of_itself(readings: Readings, network: KnownNetwork) -> Floats:
    """CKA of every two blocks of a network [blocks blocks], symmetric."""
    cka = readings.cka(network, network)
    cka = np.where(np.isnan(cka), cka.T, cka)
    if not np.isfinite(cka[~np.eye(len(cka), dtype=bool)]).all():
        raise AbsentError(f"some blocks of {network.label} were not compared by CKA")
    return np.nan_to_num(cka)


def _exchanged(table: Floats, weights: Floats, stream: int = 0) -> tuple[float, Floats]:
    """A weighted sum of the cells of a table [blocks blocks], and the same in random orders of its blocks."""
    drawn = orders(len(table), stream)
    shuffled = table[drawn[:, :, None], drawn[:, None, :]]
    return float((table * weights).sum()), np.einsum("nij,ij->n", shuffled, weights)


def _cross_weights(depth: int) -> Floats:
    """Weights of the cells above the main diagonal: near the other one minus the rest of their diagonal."""
    rows, columns = np.indices((depth, depth))
    weights = np.zeros((depth, depth))
    for apart in range(2, depth):
        diagonal = columns - rows == apart
        crossed_cells = diagonal & (abs(rows + columns - (depth - 1)) <= 1)
        others = diagonal & ~crossed_cells
        if others.any() and crossed_cells.any():
            weights[crossed_cells] = 1 / crossed_cells.sum()
            weights[others] = -1 / others.sum()
    count = len({*(columns - rows)[weights > 0].tolist()})
    if not count:
        raise AbsentError("needs a network of four blocks")
    return weights / count


def _part_weights(depth: int, block: int) -> Floats:
    """Weights of the pairs of blocks on one side of a block, from 1, minus those of pairs across it."""
    rows, columns = np.indices((depth, depth)) + 1
    pairs, across = rows < columns, (rows < block) & (columns >= block)
    within = pairs & ~across
    if not within.any() or not across.any():
        raise AbsentError("needs blocks on both sides of the one without skips")
    return np.asarray(within / within.sum() - across / across.sum(), np.float64)


def parted(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """Without the skips of a block, CKA falls across it, pair of blocks by pair, and accuracy falls."""

    def of(full: KnownNetwork, cut: KnownNetwork) -> Effect:
        change = _of_itself(readings, cut) - _of_itself(readings, full)
        split = _exchanged(change, _part_weights(full.depth, removed_block(full, cut)))
        sides = ([(each, at) for at in readings.places("knn", each)] for each in (full, cut))
        return least(
            [
                permuted(*split, f"{full.depth} layers").of("split"),
                readings.contest("knn", *sides).of("accuracy"),
            ]
        )

    return least(readings.each(pairs, of))


def shifted(readings: Readings, networks: Sequence[Group]) -> Effect:
    """The largest fall of the CKA of skip and branch from one block on, from the middle on."""

    def of(network: KnownNetwork) -> Effect:
        curve = readings.curve("residual-cka", "cka-skip-branch", network, "patch")
        if not np.isfinite(curve).all() or len(curve) < 4:
            raise AbsentError(f"{network.label} lacks `residual-cka` of some blocks")
        unit = f"{len(curve)} layers"
        return permuted(float(_falls(curve[None])[0]), _falls(curve[orders(len(curve))]), unit)

    return least(readings.each(networks, of))


def _falls(curves: Floats) -> Floats:
    """The largest fall of the mean from the blocks before a cut to those after it [curves blocks]."""
    depth = curves.shape[1]
    cuts = range(depth // 2, depth - 1)
    falls = [curves[:, :cut].mean(axis=1) - curves[:, cut:].mean(axis=1) for cut in cuts]
    return np.asarray(np.max(falls, axis=0))


def uniform_over_depth(readings: Readings, vits: Sequence[Group], convnets: Sequence[Group]) -> Effect:
    """Mean CKA of each block with the others of its network, ViT minus ConvNet."""

    def means(network: KnownNetwork) -> Floats:
        cka = _of_itself(readings, network)
        return np.asarray((cka.sum(axis=1) - np.diag(cka)) / (len(cka) - 1))

    def of(vit: KnownNetwork, convnet: KnownNetwork) -> Effect:
        return contrast(means(vit), means(convnet), "layers")

    return least(readings.each(crossed(vits, convnets), of))


def lower_half_in_quarter(readings: Readings, vits: Sequence[Group], convnets: Sequence[Group]) -> Effect:
    """A quarter minus the relative depth of the ViT's block most like each of the ConvNet's lower half."""

    def of(vit: KnownNetwork, convnet: KnownNetwork) -> Effect:
        lower = readings.cka(vit, convnet)[:, : convnet.depth // 2]
        if not np.isfinite(lower).all():
            raise AbsentError(f"some blocks of {vit.label} and {convnet.label} were not compared by CKA")
        nearest = 1 - lower[::-1].argmax(axis=0) / vit.depth  # of equal ones the deepest
        effect, half = mean_effect(QUARTER - nearest, "layers"), 0.5 / vit.depth  # a block has an extent
        return replace(effect, low=effect.low - half, high=effect.high + half)

    return least(readings.each(crossed(vits, convnets), of))


def little_data_for_low_layers(readings: Readings, shares: Sequence[Group]) -> Effect:
    """CKA of the same blocks of trainings on all and on part of the data: first half minus second."""

    def of(full: KnownNetwork, part: KnownNetwork) -> Effect:
        return contrast(*depth_halves(np.diag(readings.cka(full, part))), "layers")

    return least(readings.each(shares, of))


def redundant_blocks(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Some block is nearly the next one: CKA above 0.95, and accuracy the same within 5 points."""

    def of(network: KnownNetwork) -> Effect:
        cka, low = (readings.cka(network, network, low=low) for low in (False, True))
        items = readings.items("knn", network)
        places = {at[0]: at for at in readings.places("knn", network)}
        pairs = [
            (block, float(cka[block - 1, block]) - REDUNDANT, float(low[block - 1, block]) - REDUNDANT)
            for block in range(1, network.depth)
            if {places.get(block), places.get(block + 1)} <= {*items}
        ]
        effects = []
        for block, value, end in pairs:
            paired = paired_differences(
                [items[places[block]], items[places[block + 1]]], readings.column("knn").metric
            )
            if paired is None or np.isnan(value):
                continue
            same = Effect(value, end, 2 * value - end, "images")
            moved, ends = (
                abs(float(paired.value[1])),
                sorted((abs(float(paired.low[1])), abs(float(paired.high[1])))),
            )
            spans = float(paired.low[1]) <= 0 <= float(paired.high[1])
            within = Effect(POINTS - moved, POINTS - ends[1], POINTS - (0 if spans else ends[0]), "images")
            effects.append(least([same, within]).of(f"blocks {block} and {block + 1}"))
        if not effects:
            raise AbsentError(f"{network.label} has no neighbouring blocks with CKA and accuracy")
        return largest(effects)

    return largest(readings.each(networks, of))
