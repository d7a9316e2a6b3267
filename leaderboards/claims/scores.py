"""Statistics of claims about scores of tasks, of places and of tokens."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pandas as pd

from layerboard.leaderboards.claims.attention import first_part
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
from layerboard.leaderboards.claims.networks import Group, KnownNetwork
from layerboard.leaderboards.claims.readings import Layers, Readings
from layerboard.tasks.metrics.arrays import Floats, Mask

CLUSTERINGS = ("cluster-image", "cluster-object", "cluster-part")
LOCAL = ("davis", "spair")
PRIMARY = ("knn", "retrieval", *CLUSTERINGS, *LOCAL)
LEAST_TASKS = 3


def _layers(readings: Readings, task: str, networks: Iterable[KnownNetwork]) -> Layers:
    """The scored layers of several networks, the best first."""
    layers = []
    for network in networks:
        try:
            scores = readings.scores(task, network)
            layers += [(scores[at[0] - 1], network, at) for at in readings.places(task, network)]
        except AbsentError:
            continue
    return [(network, at) for _, network, at in sorted(layers, key=lambda each: -each[0])]


def _tasks(readings: Readings, tasks: Sequence[str]) -> list[str]:
    return [task for task in tasks if task in readings.columns]


def meaningful_class_token(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Purity of the class token of some block minus the highest of the untrained floor."""
    floor = readings.floor("cluster-image", "cls")

    def of(network: KnownNetwork) -> Effect:
        return largest([each.moved(-floor) for each in readings.in_pooling("cluster-image", network, "cls")])

    return least(readings.each(networks, of))


def supervised_most_semantic(
    readings: Readings, supervised: Sequence[Group], alone: Sequence[Group]
) -> Effect:
    """The best layer of supervised networks minus the best of self-supervised ones, in each clustering."""

    def of(task: str) -> Effect:
        first, second = (_layers(readings, task, [each for (each,) in side]) for side in (supervised, alone))
        return readings.contest(task, first, second)

    return least([of(task) for task in CLUSTERINGS])


def middle_peaks(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Share of networks whose best layer is in the second half but not the last, against random orders."""

    def of(task: str) -> Effect:
        curves = _curves(readings, task, networks)
        observed = float(np.mean([_is_middle(curve[None])[0] for curve in curves]))
        drawn = np.mean(
            [_is_middle(curve[orders(len(curve), row)]) for row, curve in enumerate(curves)], axis=0
        )
        return permuted(observed, drawn, f"{len(curves)} networks").of(task)

    return least([of(task) for task in LOCAL])


def _curves(readings: Readings, task: str, networks: Sequence[Group]) -> list[Floats]:
    curves = list[Floats]()
    for (network,) in networks:
        try:
            curves.append(_of_all_blocks(readings, task, network))
        except AbsentError:
            continue
    if not curves:
        raise AbsentError(f"needs `{task}`")
    return curves


def _of_all_blocks(readings: Readings, task: str, network: KnownNetwork) -> Floats:
    scores = readings.scores(task, network)
    if not np.isfinite(scores).all():
        raise AbsentError(f"some blocks of {network.label} have no score of `{task}`")
    return scores


def _is_middle(curves: Floats) -> Floats:
    """Whether the highest value of each curve lies from the middle to before the last [curves blocks]."""
    best, depth = curves.argmax(axis=1) + 1, curves.shape[1]
    return np.asarray((best >= depth / 2) & (best < depth), np.float64)


def no_single_best(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Each network is below the best of the others in some task."""
    tasks = _tasks(readings, PRIMARY)
    if len(tasks) < LEAST_TASKS:
        raise AbsentError(f"needs {LEAST_TASKS} tasks")
    behind: dict[KnownNetwork, list[Effect]] = {}
    for task in tasks:
        sides = {network: _layers(readings, task, [network]) for (network,) in networks}
        scored = [network for network, layers in sides.items() if layers]
        if len(scored) < 2:
            raise AbsentError(f"needs `{task}` of two backbones")
        effects = readings.contests(task, [sides[network] for network in scored], range(len(scored)))
        for network, effect in zip(scored, effects, strict=True):
            behind.setdefault(network, []).append(effect)
    return least([largest(effects).of(network.label) for network, effects in behind.items()])


def larger_is_better(readings: Readings, sizes: Sequence[Group], patches: Sequence[Group]) -> Effect:
    """Larger minus smaller network in every task, and finer minus coarser patches in local ones."""

    def gains(tasks: Sequence[str]) -> Callable[[KnownNetwork, KnownNetwork], Effect]:
        return lambda first, second: least(
            [_gain(readings, task, first, second) for task in _tasks(readings, tasks)]
        )

    return least([*readings.each(sizes, gains(PRIMARY)), *readings.each(patches, gains(LOCAL))])


def _gain(readings: Readings, task: str, first: KnownNetwork, second: KnownNetwork) -> Effect:
    """The best layer of the second network minus the best of the first."""
    sides = (_layers(readings, task, [network]) for network in (second, first))
    return readings.contest(task, *sides)


def better_parts(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """The gain of the larger network in the clustering of parts."""
    return least(readings.each(pairs, lambda *pair: _gain(readings, "cluster-part", *pair)))


def varied_ranks(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Spread of ranks over tasks: mean of networks by reconstruction minus others, under exchange."""
    tasks = _tasks(readings, PRIMARY)
    if len(tasks) < LEAST_TASKS:
        raise AbsentError(f"needs {LEAST_TASKS} tasks")
    best = [readings.best(task) for task in tasks]
    ranked = [network for (network,) in networks if all(network.name in each for each in best)]
    is_asked = np.array([network.method == "reconstruction" for network in ranked])
    if not 0 < is_asked.sum() < len(ranked):
        raise AbsentError("needs ViTs by reconstruction and others in all tasks")
    values = [[each[network.name].value for network in ranked] for each in best]
    spread = np.std(pd.DataFrame(values).rank(axis=1).to_numpy(), axis=0)

    def difference(asked: Mask) -> Floats:
        means = [(spread * kind).sum(-1) / kind.sum(-1) for kind in (asked, ~asked)]
        return np.asarray(means[0] - means[1])

    return permuted(
        float(difference(is_asked)), difference(is_asked[orders(len(ranked))]), f"{len(ranked)} networks"
    )


def keeps_places(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """Share of tokens of the last block that find their place: most, and more than after averaging."""

    def hits(network: KnownNetwork) -> Floats:
        cka = readings.array("localisation", "token_patch", 3, network)[-1]
        return np.asarray(cka.argmax(axis=1) == np.arange(len(cka)), np.float64)

    def of(cls: KnownNetwork, mean: KnownNetwork) -> Effect:
        kept, lost = hits(cls), hits(mean)
        return least(
            [mean_effect(kept - 0.5, "tokens").of("kept"), contrast(kept, lost, "tokens").of("more")]
        )

    return least(readings.each(pairs, of))


def tokens_with_class(readings: Readings, pairs: Sequence[Group]) -> Effect:
    """Accuracy of probes on single tokens of the last block: trained on the mean minus on the class token."""

    def probed(network: KnownNetwork) -> Floats:
        return np.asarray(readings.array("token-probes", "token_accuracy", 2, network)[network.depth - 1])

    return least(readings.each(pairs, lambda cls, mean: contrast(probed(mean), probed(cls), "tokens")))


def data_helps_the_middle(readings: Readings, shares: Sequence[Group]) -> Effect:
    """Gain of few-shot accuracy by all data over part of them: middle third of the blocks minus others."""

    def of(full: KnownNetwork, part: KnownNetwork) -> Effect:
        gain = readings.scores("fewshot", full) - readings.scores("fewshot", part)
        low, top = len(first_part(gain, 1 / 3)), len(first_part(gain, 2 / 3))
        return contrast(gain[low:top], np.concatenate([gain[:low], gain[top:]]), "layers")

    return least(readings.each(shares, of))


def geometry_before_class(readings: Readings, networks: Sequence[Group]) -> Effect:
    """Relative depth of the best layer of k-NN minus that of local tasks, network by network."""
    gaps = list[float]()
    for (network,) in networks:
        try:
            depths = [
                (1 + int(_of_all_blocks(readings, task, network).argmax())) / network.depth
                for task in ("knn", *LOCAL)
            ]
        except AbsentError:
            continue
        gaps.append(depths[0] - float(np.mean(depths[1:])))
    if not gaps:
        raise AbsentError("needs `knn`, `davis` and `spair` of one network")
    return mean_effect(gaps, "networks")


def lost_tracking(readings: Readings, networks: Sequence[Group]) -> Effect:
    """The best layer before the last minus the last, in mask propagation."""

    def of(network: KnownNetwork) -> Effect:
        layers = _layers(readings, "davis", [network])
        earlier = [each for each in layers if each[1][0] < network.depth]
        return readings.contest("davis", earlier, [each for each in layers if each[1][0] == network.depth])

    return least(readings.each(networks, of))
