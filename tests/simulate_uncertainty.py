"""How often intervals and confidence sets of the best keep their promise, in simulated data.

    python -m tests.simulate_uncertainty              most of an hour on one core
    python -m tests.simulate_uncertainty --only rows    one of the four parts
    python -m tests.simulate_uncertainty --quick        the same tables from few samples, seconds

Prints Markdown: coverage of the intervals of hits; how often a row of layers or a column of backbones loses
one that is as good as the best; and how often truly worse layers are told apart. Every sample of every cell
of rows and tables has a seed of its own. Items are hits where a normal number lies below a bound, which makes
the share exact; numbers of the items of a cluster are correlated by 0.3, and those of different layers of one
item by 0.8.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtri

from tasks.metrics.arrays import Floats, Integers
from tasks.metrics.best_set import best_set
from tasks.metrics.uncertainty import intervals
from tasks.metrics.weighted import Partitions, Ratios, Trials

Kind = Literal["independent", "clustered", "stratified"]
KINDS: tuple[Kind, ...] = ("independent", "clustered", "stratified")
LARGEST, WITHIN, PAIRED = 9, 0.3, 0.8  # items of a cluster; correlations within a cluster and of layers
Part = Literal["coverage", "rows", "tables", "powers"]
PARTS: tuple[Part, ...] = ("coverage", "rows", "tables", "powers")
STRATA = 5
DRAWS = 1_000  # in each confidence set
LAYERS = 12  # of each backbone of a table


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated.

    Attributes:
        samples: Samples of a cell of coverage.
        rivals: How many candidates are equally good.
        rows: Samples of a row of so many.
        tables: Samples of a table of so many.
        few: Samples of a cell of power.
        counts: Items of the grid of coverage.
        shares: True shares of hits there.
        items: Items of rows, tables and powers.
    """

    samples: int
    rivals: tuple[int, ...]
    rows: tuple[int, ...]
    tables: tuple[int, ...]
    few: int
    counts: tuple[int, ...]
    shares: tuple[float, ...]
    items: tuple[int, ...]


FULL = Size(
    samples=2_000,
    rivals=(2, 7, 12),
    rows=(4_000, 4_000, 4_000),
    tables=(2_000, 600, 600),
    few=300,
    counts=(20, 50, 100, 200, 500),
    shares=(0.02, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 0.97, 0.98),
    items=(50, 200, 500),
)
QUICK = Size(
    samples=60,
    rivals=(2, 7),
    rows=(60, 60),
    tables=(8, 8),
    few=8,
    counts=(20, 200),
    shares=(0.02, 0.5, 0.97),
    items=(200,),
)


def hits(random: np.random.Generator, kind: Kind, count: int, shares: Sequence[float]) -> Ratios:
    """Hits of so many items by layers with these true shares; strata differ in how hard they are."""
    cluster = np.arange(count)
    if kind == "clustered":
        sizes = random.integers(1, LARGEST + 1, size=count)
        cluster = np.repeat(np.arange(count), sizes)[:count]
    units = int(cluster.max()) + 1
    stratum = np.arange(units) % STRATA if kind == "stratified" else np.zeros(units, np.int64)
    true = np.asarray(shares)
    shift = np.linspace(-0.9, 0.9, STRATA)[stratum[cluster], None] * (kind == "stratified")
    numbers = _numbers(random, cluster, len(shares))
    right = numbers < ndtri(true + shift * np.minimum(true, 1 - true))
    totals = np.zeros((units, len(shares)))
    np.add.at(totals, cluster, right)
    held = np.bincount(cluster).astype(np.float64)
    return Ratios(totals, held, np.zeros(units, np.int64), stratum, Trials(held, np.ones(len(shares))))


def _numbers(random: np.random.Generator, cluster: Integers, layers: int) -> Floats:
    """Normal numbers [items layers], correlated among layers and within clusters of several items."""

    def drawn(width: int) -> Floats:
        own = random.normal(size=(len(cluster), width))
        shared = random.normal(size=(len(cluster), width))[cluster]
        return np.asarray(np.sqrt(1 - WITHIN) * own + np.sqrt(WITHIN) * shared)

    return np.asarray(np.sqrt(PAIRED) * drawn(1) + np.sqrt(1 - PAIRED) * drawn(layers))


def partitions(random: np.random.Generator, count: int, layers: int) -> Partitions:
    """Clusterings of images with one to three regions of 6 classes, all equally good."""
    unit = np.repeat(np.arange(count), random.integers(1, 4, size=count))[:count]
    labels = random.integers(6, size=count)
    wrong = random.random((layers, 1, count)) < 0.4
    starts = np.where(wrong, random.integers(6, size=wrong.shape), labels)
    return Partitions(labels, starts, ("purity",), unit, np.zeros(unit.max() + 1, np.int64))


def coverage(size: Size, kind: Kind, count: int, share: float) -> float:
    """Share of the samples whose interval holds the true share of hits."""
    held = 0
    for seed in range(size.samples):
        low, high = intervals(hits(np.random.default_rng((seed, count)), kind, count, [share]))
        held += bool(low[0] <= share <= high[0])
    return held / size.samples


def lost(
    make: Callable[[np.random.Generator], Ratios | Partitions], samples: int, cell: Sequence[int]
) -> float:
    """Share of the samples in which one of equal candidates is left out; cells have samples of their own."""
    wrong = 0
    for seed in range(samples):
        inside = best_set(make(np.random.default_rng((seed, *cell))), seed=seed, draws=DRAWS)
        wrong += inside is not None and not inside.all()
    return wrong / samples


def lost_backbones(samples: int, rivals: int, count: int, *, alike: bool) -> float:
    """Share of the tables in which a backbone as good as the best is left out, its layers chosen before.

    Args:
        samples: How many tables.
        rivals: Backbones.
        count: Items.
        alike: Whether all layers of all are equal; else every second backbone has one such layer, and the
            others of it are 20 points worse.
    """
    wrong = 0
    shares = np.full((rivals, LAYERS), 0.7)
    if not alike:
        shares[::2, 1:] = 0.5
    owner = np.repeat(np.arange(rivals), LAYERS)
    for seed in range(samples):
        random = np.random.default_rng((seed, rivals, count))
        measured = hits(random, "independent", count, shares.ravel().tolist())
        layers = [np.flatnonzero(owner == one) for one in range(rivals)]
        sets = [best_set(measured.columns(one), seed=seed, draws=DRAWS) for one in layers]
        kept = np.concatenate([one[inside] for one, inside in zip(layers, sets, strict=True)])
        inside = best_set(measured.columns(kept), owner[kept].tolist(), seed=seed, draws=DRAWS)
        wrong += inside is not None and not inside.all()
    return wrong / samples


def power(size: Size, rivals: int, count: int, points: int) -> float:
    """Share of the worse layers that are told apart from the one that is better by so many points."""
    shares = [0.7] + [0.7 - points / 100] * (rivals - 1)
    apart = 0.0
    for seed in range(size.few):
        measured = hits(np.random.default_rng((seed, rivals, count)), "independent", count, shares)
        inside = best_set(measured, seed=seed, draws=DRAWS)
        apart += 0.0 if inside is None else 1 - float(inside[1:].mean())
    return apart / size.few


def table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    """Lines of a Markdown table, shares as percent."""
    yield "| " + " | ".join(map(str, head)) + " |"
    yield "|---" * len(head) + "|"
    for row in rows:
        yield (
            "| "
            + " | ".join(f"{100 * one:.1f}" if isinstance(one, float) else str(one) for one in row)
            + " |"
        )
    yield ""


def report(size: Size, parts: Sequence[Part] = PARTS) -> Iterator[str]:
    """The tables of some parts, line by line."""
    heads = [f"{rivals} equal" for rivals in size.rivals]
    if "coverage" in parts:
        yield f"Coverage of 95 % intervals of hits, in percent ({size.samples:,} samples a cell):\n"
        rows = [
            [kind, count, *(coverage(size, kind, count, share) for share in size.shares)]
            for kind in KINDS
            for count in size.counts
        ]
        yield from table(["items", "n", *(f"p {share:g}" for share in size.shares)], rows)
    if "rows" in parts:
        yield (
            f"Rows that lose a layer as good as the best, in percent ({_listed(size.rows)} samples a cell):\n"
        )
        yield from table(["items", "n", "p", *heads], _lost_rows(size))
    if "tables" in parts:
        yield (
            f"Tables that lose a backbone as good as the best, {LAYERS} layers each "
            f"({_listed(size.tables)} samples a cell):\n"
        )
        yield from table(["layers of a backbone", "n", *heads], _lost_tables(size))
    if "powers" in parts:
        yield "Layers told apart that are worse by 2, 5 and 10 points (of 70 %), in percent:\n"
        points = (f"{points} points" for points in (2, 5, 10))
        yield from table(["candidates", "n", *points], _powers(size))


def _listed(counts: Sequence[int]) -> str:
    return ", ".join(f"{count:,}" for count in counts)


def _lost_rows(size: Size) -> Iterator[list[object]]:
    for number, kind in enumerate(KINDS):
        for count in size.items:
            for share in (0.5, 0.95):
                errors = [
                    lost(
                        lambda random, n=rivals: hits(random, kind, count, [share] * n),  # type: ignore[misc]  # noqa: B023
                        samples,
                        (number, count, int(100 * share), rivals),
                    )
                    for rivals, samples in zip(size.rivals, size.rows, strict=True)
                ]
                yield [kind, count, f"{share:g}", *errors]
    for count in size.items[-2:-1] or size.items:
        errors = [
            lost(lambda random, n=rivals: partitions(random, count, n), samples, (count, rivals))  # type: ignore[misc]  # noqa: B023
            for rivals, samples in zip(size.rivals, size.rows, strict=True)
        ]
        yield ["purity", count, "", *errors]


def _lost_tables(size: Size) -> Iterator[list[object]]:
    for alike in (True, False):
        name = "all equal" if alike else "every second backbone has one good layer"
        for count in size.items[-2:]:
            samples = zip(size.rivals, size.tables, strict=True)
            yield [name, count, *(lost_backbones(many, n, count, alike=alike) for n, many in samples)]


def _powers(size: Size) -> Iterator[list[object]]:
    for rivals in size.rivals:
        for count in (*size.items, 10 * size.items[-1]):
            yield [rivals, count, *(power(size, rivals, count, points) for points in (2, 5, 10))]


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description="Simulate intervals and confidence sets of the best.")
    parser.add_argument("--quick", action="store_true", help="few samples, in seconds")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some of the tables")
    given = parser.parse_args()
    for line in report(QUICK if given.quick else FULL, given.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
