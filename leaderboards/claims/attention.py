"""Statistics of claims about attention, receptive fields and residual streams."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from layerboard.leaderboards.claims.effects import (
    AbsentError,
    Effect,
    contrast,
    largest,
    least,
    mean_effect,
    orders,
    permuted,
    share_above,
)
from layerboard.leaderboards.claims.networks import Group, KnownNetwork, crossed
from layerboard.leaderboards.claims.readings import Readings
from layerboard.tasks.metrics.arrays import Floats

OFFSET_HEADS = 0.05  # share of heads above which a network counts as having offset heads
REACHED = 0.95  # share of the IoU of late blocks that counts as reaching it
EARLY = 2 / 3  # relative depth up to which layers are early to middle
POINTS = 24  # relative depths at which curves of networks of different depth are compared


def depth_halves(curve: Floats) -> tuple[Floats, Floats]:
    """The numbers of the first half of the blocks, and of the second."""
    middle = len(curve) // 2
    return curve[:middle], curve[middle:]


def correlations(rows: Floats | Sequence[Floats]) -> Floats:
    """Correlations of every two rows; NaN for a row whose numbers are all equal."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.corrcoef(np.asarray(rows)))


def first_part(curve: Floats, share: float) -> Floats:
    """The numbers of the blocks up to a relative depth, at least of two."""
    return curve[: max(2, round(share * len(curve)))]


def sparse_and_shared(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Entropy of the class token falls, and the correlation of its maps between heads rises with depth."""

    def of(network: KnownNetwork) -> Effect:
        entropy = readings.curve("attention-shares", "entropy", network, "cls")
        maps = readings.array("attention-maps", "cls_map", 3, network)
        if maps.shape[1] < 2:
            raise AbsentError(f"{network.label} has a single head")
        pairs = np.triu_indices(maps.shape[1], 1)
        alike = np.array([correlations(heads)[pairs].mean() for heads in maps])
        falls, rises = depth_halves(entropy), depth_halves(alike)
        sparse, repeated = contrast(falls[0], falls[1], "layers"), contrast(rises[1], rises[0], "layers")
        return least([sparse.of("sparse"), repeated.of("repeated")])

    return least(readings.each(networks, of))


def offset_heads(readings: Readings, networks: Sequence[Group]) -> Effect:
    """The share of heads of each network that look to one side."""

    def of(network: KnownNetwork) -> Effect:
        kinds = readings.array("attention-maps", "class", 2, network)
        return share_above(int((kinds == "offset").sum()), kinds.size, OFFSET_HEADS, "heads")

    return least(readings.each(networks, of))


def diagonal_heads(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """The share of heads with an offset in both directions, larger network minus smaller."""

    def diagonal(network: KnownNetwork) -> Floats:
        kinds = readings.array("attention-maps", "class", 2, network)
        peaks = readings.array("attention-maps", "peak", 3, network)
        return np.asarray((kinds == "offset") & (peaks != 0).all(axis=2), np.float64)

    return least(
        readings.each(pairs, lambda small, large: contrast(diagonal(large), diagonal(small), "heads"))
    )


def _distances(readings: Readings, networks: Sequence[Group]) -> dict[KnownNetwork, Floats]:
    """Curves of attention distance over relative depth, by network; AbsentError for fewer than three."""
    depths, curves = np.linspace(0, 1, POINTS), dict[KnownNetwork, Floats]()
    for (network,) in networks:
        try:
            curve = readings.curve("attention-distance", "attention-distance", network, "patch")
        except AbsentError:
            continue
        if np.isfinite(curve).all() and len(curve) > 2:
            curves[network] = np.interp(depths, np.linspace(0, 1, len(curve)), curve)
    if len(curves) < 3:
        raise AbsentError("needs `attention-distance` of three networks")
    return curves


def _within_groups(alike: Floats, labels: Sequence[object], unit: str) -> Effect:
    """Mean correlation of networks of one label minus that of networks of two, under exchange of labels."""
    codes = np.unique([str(label) for label in labels], return_inverse=True)[1]
    pairs = np.triu_indices(len(codes), 1)
    names = codes[np.concatenate([[np.arange(len(codes))], orders(len(codes))])]
    same = names[:, pairs[0]] == names[:, pairs[1]]
    if not same[0].any() or same[0].all():
        raise AbsentError("needs two networks of one kind, and one of another")
    values = alike[pairs]
    within = (same * values).sum(axis=1) / same.sum(axis=1)
    between = (~same * values).sum(axis=1) / (~same).sum(axis=1)
    statistics = within - between
    return permuted(float(statistics[0]), statistics[1:], unit)


def order_by_method(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Curves of attention distance are more alike within a method than between two.

    The sizes of one training count once, by their mean.
    """
    trainings: dict[tuple[str, ...], list[KnownNetwork]] = {}
    curves = _distances(readings, networks)
    for network in curves:
        trainings.setdefault(network.training, []).append(network)
    means = [np.mean([curves[each] for each in sizes], axis=0) for sizes in trainings.values()]
    methods = [sizes[0].method for sizes in trainings.values()]
    return _within_groups(correlations(means), methods, f"{len(means)} trainings")


def order_by_training(readings: Readings, sizes: Sequence[Group], networks: Sequence[Group]) -> Effect:
    """The same for sizes and patch sizes of one training against other trainings."""
    del sizes  # that there are any
    curves = _distances(readings, networks)
    alike = correlations([*curves.values()])
    return _within_groups(alike, [network.training for network in curves], f"{len(curves)} networks")


def early_saliency(readings: Readings, networks: Sequence[Group]) -> Effect:
    """IoU with objects rises from the first to the second third of the blocks, and hardly after it.

    It is that of the best head, as a share of the network's best. The rise is compared with that in random
    orders of the layers; the second third has 95 % of the last one; and some block up to there is above a
    uniform map in each network.
    """
    curves, above = list[Floats](), list[Effect]()
    for (network,) in networks:
        try:
            curve = readings.curve("saliency", "saliency-iou-best", network, "patch")
            above.append(_above_uniform(readings, network).of(network.label))
        except AbsentError:
            continue
        curves.append(curve / np.nanmax(curve))
    if not curves:
        raise AbsentError("needs `saliency` with per-item measurements")
    drawn = np.mean([_rise(curve[orders(len(curve), row)]) for row, curve in enumerate(curves)], axis=0)
    risen = float(np.mean([_rise(curve) for curve in curves]))
    rises = permuted(risen, drawn, f"layers of {len(curves)} networks").of("rises before the middle")
    parts = [np.split(curve, _thirds(len(curve))) for curve in curves]
    middle, late = (np.concatenate([part[third] for part in parts]) for third in (1, 2))
    return least([rises, contrast(middle, REACHED * late, "layers").of("reached by then"), least(above)])


def _thirds(depth: int) -> list[int]:
    return [round(depth / 3), round(2 * depth / 3)]


def _rise(curves: Floats) -> Floats:
    """The mean of the second third of the blocks minus that of the first [... blocks]."""
    low, middle, _ = np.split(curves, _thirds(curves.shape[-1]), axis=-1)
    return np.asarray(middle.mean(axis=-1) - low.mean(axis=-1))


def _above_uniform(readings: Readings, network: KnownNetwork) -> Effect:
    """The best head of some early block minus a uniform map, over images."""
    early = [
        mean_effect(items.values["saliency-iou-best"] - items.values["saliency-iou-uniform"], items.unit)
        for (layer, _, pooling), items in readings.items("saliency", network).items()
        if pooling == "patch" and 1 <= layer <= EARLY * network.depth
    ]
    if not early:
        raise AbsentError(f"{network.label} has no per-item measurements of `saliency`")
    return largest(early).of("above a uniform map")


def early_saliency_of_larger(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """`early_saliency` of the larger networks alone."""
    return early_saliency(readings, [*dict.fromkeys((large,) for _, large in pairs)])


def by_image(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Maps of the class token differ more between images than between heads, in the second half."""

    def of(network: KnownNetwork) -> Effect:
        shown = readings.array("attention-maps", "sample_cls", 4, network)
        heads = readings.array("attention-maps", "cls_map", 3, network)
        cells = shown.shape[2] * shown.shape[3]
        images = shown.reshape(*shown.shape[:2], cells).transpose(1, 0, 2)
        differences = _spread(images) - _spread(heads[:, :, -cells:])
        return mean_effect(depth_halves(differences)[1], "layers")

    return least(readings.each(networks, of))


def _spread(maps: Floats) -> Floats:
    """Mean distance in total variation of the maps of every block [blocks maps cells]."""
    if maps.shape[1] < 2:
        raise AbsentError("needs two maps")
    maps = maps / np.maximum(maps.sum(axis=2, keepdims=True), 1e-12)
    apart = [
        abs(maps[:, first] - maps[:, second]).sum(axis=1) / 2
        for first, second in combinations(range(maps.shape[1]), 2)
    ]
    return np.asarray(np.mean(apart, axis=0))


def sparser_with_small_patches(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """Entropy of the class token in the second half, coarse patches minus fine ones, block by block."""

    def of(coarse: KnownNetwork, fine: KnownNetwork) -> Effect:
        first, second = (
            depth_halves(readings.curve("attention-shares", "entropy", network, "cls"))[1]
            for network in (coarse, fine)
        )
        return mean_effect(first - second, "layers")

    return least(readings.each(pairs, of))


def local_and_global(readings: Readings, networks: Sequence[Group], shares: Sequence[Group]) -> Effect:
    """Heads of low blocks differ in distance more than later ones, and are less local with less data."""

    def mixed(network: KnownNetwork) -> Effect:
        spread = readings.curve("attention-distance", "distance-range", network, "patch")
        low = first_part(spread, 1 / 4)
        return contrast(low, spread[len(low) :], "layers")

    def low_heads(network: KnownNetwork) -> Floats:
        heads = readings.heads("attention-distance", "attention-distance-ratio", network, "patch")
        return first_part(heads, 1 / 4)

    def fewer(full: KnownNetwork, part: KnownNetwork) -> Effect:
        return contrast(low_heads(part), low_heads(full), "heads")

    return least([*readings.each(networks, mixed), *readings.each(shares, fewer)])


def wide_fields(readings: Readings, vits: Sequence[Group], convnets: Sequence[Group]) -> Effect:
    """Half radius of the receptive fields of the first third of the blocks, ViT minus ConvNet."""

    def of(vit: KnownNetwork, convnet: KnownNetwork) -> Effect:
        first, second = (
            first_part(readings.curve("receptive-field", "erf-half-radius", network, "patch", "block"), 1 / 3)
            for network in (vit, convnet)
        )
        return contrast(first, second, "layers")

    return least(readings.each(crossed(vits, convnets), of))


def strong_skips(readings: Readings, vits: Sequence[Group], convnets: Sequence[Group]) -> Effect:
    """Skip norm over branch norm: ViT minus ConvNet; class token minus patches, which falls with depth."""

    def of(vit: KnownNetwork, convnet: KnownNetwork) -> Effect:
        cls, patch = (readings.curve("residuals", "norm-ratio", vit, pooling) for pooling in ("cls", "patch"))
        other = readings.curve("residuals", "norm-ratio", convnet, "patch", "branch")
        first = contrast(*depth_halves(cls - patch), "layers").of("class token first")
        return least([contrast(patch, other, "layers").of("stronger"), first])

    return least(readings.each(crossed(vits, convnets), of))
