"""How often statements about the best layer are wrong, and what they find, in simulated samples.

A population of answers is known: each sample draws images from it with replacement. Real answers are those of
k-NN on the mini suite's test images in the layers of its backbones, and on handwritten digits, seen through
the layers of random networks. Made ones are correlated, or nested: each layer errs where a better one errs,
and on some more images.
"""

import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import layerboard
from layerboard.leaderboards.records.files import scored_path, task_key
from layerboard.leaderboards.records.items import read_items
from layerboard.tasks.metrics.arrays import Floats, Mask
from layerboard.tasks.statistics.mcb import compare_groups, compare_with_best
from layerboard.tasks.statistics.weighted import Ratios, Trials

DEPTH = 12  # layers of each network
TAUGHT = 600  # images of digits that k-NN learns from; the others are tested
SEVEN = ("mini-fs", "mini-clip", "mini-dino", "mini-moco", "mini-mae", "mini-beit", "mini-resnet")
POPULATION = 20_000  # images of a made population
Row = list[object]


@cache
def mini_answers(*backbones: str) -> Mask:
    """Whether k-NN is right on each test image of the mini suite in each block: [576 backbones * 12]."""
    with tempfile.TemporaryDirectory() as folder:
        layerboard.run(list(backbones), tasks="knn", output=folder, cache=Path(folder) / "cache")
        right = []
        for name in backbones:
            path = Path(folder) / "items" / scored_path(task_key("knn", "mini-imagenet", "standard"), name)
            for (layer, tap, pooling), items in read_items(path).items():
                if tap == "block" and layer > 0 and pooling == "mean":
                    right.append(items.values[items.statistics["top-1"].column] > 0)
    return np.stack(right, axis=1)


@cache
def digit_answers(networks: int, noise: float = 0.15) -> Mask:
    """Whether k-NN is right on each digit in each layer of random networks: [1197 networks * 12]."""
    random = np.random.default_rng(0)
    pixels, labels = load_digits(return_X_y=True)
    order = random.permutation(len(labels))
    pixels, labels = pixels[order] / 16, labels[order]
    right = []
    for _ in range(networks):
        features = pixels + noise * random.normal(size=pixels.shape)
        for _ in range(DEPTH):
            weights = random.normal(size=(features.shape[1], 64)) / np.sqrt(features.shape[1])
            features = features + 0.35 * np.tanh(features @ weights + 0.3 * random.normal(size=64))
            nearest = KNeighborsClassifier(5).fit(features[:TAUGHT], labels[:TAUGHT])
            right.append(nearest.predict(features[TAUGHT:]) == labels[TAUGHT:])
    return np.stack(right, axis=1)


def correlated_answers(shares: Sequence[float], correlation: float) -> Mask:
    """Answers [images layers] with exactly these shares right; normal numbers behind them are correlated."""
    random = np.random.default_rng(0)
    common = random.normal(size=(POPULATION, 1))
    own = random.normal(size=(POPULATION, len(shares)))
    ranks = (np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own).argsort(axis=0).argsort(axis=0)
    return np.asarray(ranks < np.round(np.asarray(shares) * POPULATION), np.bool_)


def nested_answers(lost: Sequence[float], share: float) -> Mask:
    """Answers [images layers] of layers that lose some of what the first gets right and mend nothing."""
    random = np.random.default_rng(0)
    right = np.arange(POPULATION) < share * POPULATION
    return np.stack([right & (random.random(POPULATION) >= part / share) for part in lost], axis=1)


def failing_videos(layers: int, failing: int, lost: float, noise: float) -> Floats:
    """J&F as a fraction, [videos layers], of equal layers, of which some fail in a tenth of the videos.

    Each of the ``failing`` last layers loses ``lost`` there; all of them have ``noise`` of their own.
    """
    random = np.random.default_rng(0)
    values = random.beta(5.6, 2.4, (POPULATION, 1)) + noise * random.normal(size=(POPULATION, layers))
    fails = random.random((POPULATION, layers)) < 0.1 * (np.arange(layers) >= layers - failing)
    return np.asarray((values - lost * fails).clip(0, 1), np.float64)


def hits_of(answers: Mask | Floats) -> Ratios:
    """Answers as hits of images that are drawn one by one; or shares, such as the J&F of videos."""
    images, layers = answers.shape
    nothing = np.zeros(images, np.int64)
    trials = Trials(np.ones(images), np.full(layers, 100.0))
    return Ratios(np.asarray(100.0 * answers, np.float64), np.ones(images), nothing, nothing, trials)


def of_best(population: Mask | Floats, count: int, samples: int) -> list[float]:
    """Shares of samples in which a statement on the layers is wrong, and of worse layers told apart.

    In turn: no truly best layer is among those that may be the best; the loss of some layer is larger than
    stated; that of the layer for which this happens most; that of the layer that scores highest; a given
    layer that is as good as the best is shown to be worse; and a layer that is 5 to 10 points worse is shown
    to be so (NaN without such).
    """
    below = 100 * (population.mean(axis=0).max() - population.mean(axis=0))
    equal, worse = below < 1e-9, (below >= 5) & (below <= 10)
    lost = some = picked = 0
    wrong, apart = np.zeros(len(below)), np.zeros(len(below))
    for seed in range(samples):
        random = np.random.default_rng((seed, count, len(below)))
        answers = population[random.integers(len(population), size=count)]
        compared = compare_with_best(hits_of(answers), seed)
        assert compared is not None
        more = compared.loss < below - 1e-9
        lost += not (compared.maybe & equal).any()
        some += bool(more.any())
        picked += bool(more[np.argmax(answers.mean(axis=0))])
        wrong, apart = wrong + more, apart + ~compared.maybe
    noticed = float(apart[worse].mean()) if worse.any() else float("nan")
    times = (lost, some, float(wrong.max()), picked, float(apart[equal].mean()), noticed)
    return [time / samples for time in times]


def of_groups(population: Mask, first: int, count: int, samples: int) -> list[float]:
    """Shares of samples in which the interval of the difference of two backbones misses it, and each wins."""
    scores = 100 * population.mean(axis=0)
    side = np.arange(len(scores)) < first
    truth = scores[side].max() - scores[~side].max()
    missed, wins = 0, [0, 0]
    for seed in range(samples):
        random = np.random.default_rng((seed, count, len(scores)))
        hits = hits_of(population[random.integers(len(population), size=count)])
        groups = compare_groups(hits, side, seed=seed)
        assert groups is not None
        missed += not groups.low - 1e-9 <= truth <= groups.high + 1e-9
        if groups.p < 0.05:
            wins[groups.value < 0] += 1
    return [share / samples for share in (missed, *wins)]


def of_cheapest(population: Mask, count: int, samples: int, most: float = 2.0) -> list[float]:
    """What the first layer loses of which the statement is that it loses at most ``most`` points.

    Share of the samples that have such a layer, of those in which it loses more than stated, and its mean
    true loss in points.
    """
    below = 100 * (population.mean(axis=0).max() - population.mean(axis=0))
    taken, wrong, losses = 0, 0, list[float]()
    for seed in range(samples):
        random = np.random.default_rng((seed, count, len(below)))
        compared = compare_with_best(hits_of(population[random.integers(len(population), size=count)]), seed)
        assert compared is not None
        safe = np.flatnonzero(compared.loss <= most)
        if len(safe):
            taken += 1
            wrong += bool(below[safe[0]] > compared.loss[safe[0]] + 1e-9)
            losses.append(float(below[safe[0]]))
    lost = float(np.mean(losses)) if losses else float("nan")
    return [taken / samples, wrong / samples, lost / 100]  # a table shows 100 times as much


def populations(*, mini: bool) -> Iterator[tuple[str, Mask]]:
    """What populations are and their answers; with or without those of the mini suite."""
    falling = np.linspace(0, 0.11, DEPTH).tolist()
    if mini:
        yield "12 layers of mini-dino", mini_answers("mini-dino")
        yield "36 layers of three mini backbones", mini_answers("mini-dino", "mini-fs", "mini-clip")
        yield "84 layers of the seven mini backbones", mini_answers(*SEVEN)
    yield from {
        "12 layers of a random network, digits": digit_answers(1),
        "84 layers of seven random networks, digits": digit_answers(7),
        "2 layers, one loses 1 point, nested": nested_answers((0, 0.01), 0.8),
        "2 layers, one loses 4 points, nested": nested_answers((0, 0.04), 0.8),
        "12 layers, each loses 1 point more, nested": nested_answers(falling, 0.8),
        "12 layers, each loses 1 point more, nested, 97 %": nested_answers(falling, 0.97),
        "84 layers, all but one lose 3 points, nested": nested_answers((0, *[0.03] * 83), 0.8),
        "12 equal layers, correlation 0.5": correlated_answers([0.7] * 12, 0.5),
        "12 equal layers, correlation 0.95": correlated_answers([0.7] * 12, 0.95),
        "12 equal layers, 95 %, correlation 0.8": correlated_answers([0.95] * 12, 0.8),
        "84 equal layers, correlation 0.8": correlated_answers([0.7] * 84, 0.8),
    }.items()


def best_layer_rows(counts: Sequence[int], samples: int, fewer: int, *, mini: bool) -> Iterator[Row]:
    """Rows of `of_best`; populations of many layers have ``fewer`` samples."""
    for name, population in populations(mini=mini):
        few = fewer if population.shape[1] > DEPTH else samples
        for count in counts:
            yield [name, count, few, *of_best(population, count, few)]


def group_rows(counts: Sequence[int], samples: int) -> Iterator[Row]:
    """Rows of `of_groups` for backbones whose best layers are equally good, and for real ones."""
    uneven = [0.7] + [0.7] * 11 + [0.7] + [0.62] * 11
    for name, first, population in (
        ("1 layer against 1", 1, correlated_answers([0.7] * 2, 0.8)),
        ("1 layer against 11 equal ones", 1, correlated_answers([0.7] * 12, 0.8)),
        ("12 equal layers against one good layer of 12", 12, correlated_answers(uneven, 0.8)),
        ("12 equal layers against 12", 12, correlated_answers([0.7] * 24, 0.8)),
    ):
        for count in counts:
            yield [name, count, *of_groups(population, first, count, samples)]


def failure_rows(counts: Sequence[int], samples: int) -> Iterator[Row]:
    """Rows of `of_best` on losses, where layers fail in a tenth of the videos."""
    for name, population in (
        ("12, one loses 40 points there", failing_videos(12, 1, 0.4, 0.05)),
        ("12, six lose 40 points, each elsewhere", failing_videos(12, 6, 0.4, 0.05)),
        ("12, three lose all", failing_videos(12, 3, 1.0, 0.05)),
        ("4, one loses 40 points", failing_videos(4, 1, 0.4, 0.05)),
        ("2, one loses 40 points", failing_videos(2, 1, 0.4, 0.1)),
        ("2, nearly the same, one loses 40 points", failing_videos(2, 1, 0.4, 0.02)),
    ):
        for count in counts:
            yield [name, count, *of_best(population, count, samples)[1:4]]


def cheapest_rows(counts: Sequence[int], samples: int) -> Iterator[Row]:
    """Rows of `of_cheapest`, the cheapest layer being the worst."""
    for name, below in (
        ("12, falling by 0.5 points each", np.linspace(0.055, 0, 12)),
        ("12, falling by 1 point each", np.linspace(0.11, 0, 12)),
        ("12, all but the best 2.5 points below it", np.array([0.025] * 11 + [0.0])),
        ("60, all but the best 2.2 points below it", np.array([0.022] * 59 + [0.0])),
    ):
        population = correlated_answers((0.7 - below).tolist(), 0.9)
        for count in counts:
            yield [name, count, *of_cheapest(population, count, samples)]
