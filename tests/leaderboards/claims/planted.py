"""Worlds with a planted answer to claims: readings whose numbers come from functions of a network.

Numbers are the same whenever they are read. An exchanged world has the same ones with the layers of each
network in another order, or with the networks in each other's place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.claims.effects import Effect
from layerboard.leaderboards.claims.entries import LABELS, LAYERS
from layerboard.leaderboards.claims.networks import KnownNetwork
from layerboard.leaderboards.claims.readings import AbsentError, Readings
from layerboard.leaderboards.records.record import to_frame
from layerboard.tasks.framework.base import Items, Statistic
from layerboard.zoo.registry.find import all_specs

Array = NDArray[Any]
Generator = np.random.Generator
Draw = Callable[[KnownNetwork, Generator], Array]
IMAGES = 150
KEYS = tuple(f"image {number}" for number in range(IMAGES))
SPECS = {spec.name: spec for spec in all_specs()}


@dataclass
class Plan:
    """The numbers of a world by functions of a network: curves [blocks] or of heads [blocks heads], arrays,
    CKA of two networks [blocks blocks], and the chance of a hit of every block [blocks].

    Curves are named by task, metric and, if several are read, the tokens or tap.
    """

    names: str
    curves: Mapping[tuple[str, ...], Draw] = field(default_factory=dict)
    arrays: Mapping[tuple[str, str], Draw] = field(default_factory=dict)
    cka: Callable[[KnownNetwork, KnownNetwork, Generator], Array] | None = None
    hits: Mapping[str, Draw] = field(default_factory=dict)
    floor: float = 0.2  # chance of a hit of untrained networks


class World(Readings):
    """Readings of a plan, exchanged as a null of claims says."""

    def __init__(self, plan: Plan, seed: int = 0, null: str = "") -> None:
        super().__init__(Board.of(to_frame([])))
        self.plan, self.seed, self.null = plan, seed, null
        self.tables: dict[object, dict[str, Array]] = {}

    @cached_property
    def networks(self) -> tuple[KnownNetwork, ...]:
        return tuple(KnownNetwork(SPECS[name], name) for name in self.plan.names.split())

    @cached_property
    def columns(self) -> Mapping[str, Any]:
        return {task: SimpleNamespace(metric="hit") for task in self.plan.hits}

    def has(self, task: str) -> bool:
        known = {key[0] for key in (*self.plan.curves, *self.plan.arrays)} | {*self.plan.hits}
        return task in known or (task == "cka" and self.plan.cka is not None)

    def generator(self, key: object) -> Generator:
        return np.random.default_rng([self.seed, crc32(str(key).encode())])

    def read(self, key: object, draw: Draw | None, network: KnownNetwork) -> Array:
        """The numbers of a network, from those of all that are exchanged."""
        if draw is None:
            raise AbsentError(f"needs {key}")
        if key not in self.tables:
            generator = self.generator(key)
            table = {each.name: np.asarray(draw(each, generator)) for each in self.networks}
            if self.null == LAYERS:
                table = {name: generator.permutation(values) for name, values in table.items()}
            if self.null == LABELS:
                order = np.random.default_rng(self.seed).permutation([*table])  # the same of all numbers
                table = {name: table[other] for name, other in zip(table, order, strict=True)}
            self.tables[key] = table
        return self.tables[key][network.name]

    def heads(
        self,
        task: str,
        metric: str,
        network: KnownNetwork,
        pooling: str,
        tap: str = "attention",
        *,
        of_heads: bool = True,
    ) -> Array:
        keys = [(task, metric, tap), (task, metric, pooling), (task, metric)]
        key = next((key for key in keys if key in self.plan.curves), keys[-1])
        table = self.read(key, self.plan.curves.get(key), network)
        return table if table.ndim == 2 else table[:, None]

    def array(self, task: str, name: str, axes: int, network: KnownNetwork) -> Array:
        found = self.read((task, name), self.plan.arrays.get((task, name)), network)
        assert found.ndim == axes
        return found

    def cka(self, first: KnownNetwork, second: KnownNetwork, *, low: bool = False) -> Array:
        assert self.plan.cka is not None
        orders = {
            each.name: self.generator(each.name).permutation(each.depth)
            if self.null == LAYERS
            else np.arange(each.depth)
            for each in (first, second)
        }
        table = self.plan.cka(first, second, self.generator((first.name, second.name)))
        return table[np.ix_(orders[first.name], orders[second.name])] - (0.01 if low else 0)

    def hits(self, task: str, network: KnownNetwork) -> Array:
        """Hits of every block on every image [blocks images]: images are as hard for one as for another."""
        hard = self.generator(task).random(IMAGES)

        def drawn(each: KnownNetwork, generator: Generator) -> Array:
            luck = np.where(
                generator.random((each.depth, IMAGES)) < 0.3, generator.random((each.depth, IMAGES)), hard
            )
            return 100.0 * (luck < self.plan.hits[task](each, generator)[:, None])

        return self.read(task, drawn if task in self.plan.hits else None, network)

    def scores(self, task: str, network: KnownNetwork) -> Array:
        return np.asarray(self.hits(task, network).mean(axis=1))

    def places(self, task: str, network: KnownNetwork, pooling: str = "") -> list[tuple[int, str, str]]:
        order = np.argsort(-self.scores(task, network), kind="stable")
        return [(int(row) + 1, "block", "cls") for row in order]

    def best(self, task: str) -> dict[str, Effect]:
        found = {each.name: self.hits(task, each) for each in self.networks}
        return {name: _scored(hits[hits.mean(axis=1).argmax()]) for name, hits in found.items()}

    def floor(self, task: str, pooling: str) -> float:
        return 100 * self.plan.floor

    def in_pooling(self, task: str, network: KnownNetwork, pooling: str) -> list[Effect]:
        return [_scored(row) for row in self.hits(task, network)]

    def items(self, task: str, network: KnownNetwork) -> dict[tuple[int, str, str], Items]:
        if task == "saliency":
            above = self.generator(task).normal(0.3, 0.1, IMAGES)
            values = {"saliency-iou-best": above, "saliency-iou-uniform": np.zeros(IMAGES)}
            return {(1, "attention", "patch"): _items(values)}
        rows = enumerate(self.hits(task, network), start=1)
        return {(block, "block", "cls"): _items({"hit": row}) for block, row in rows}


def _scored(row: Array) -> Effect:
    mean, half = float(row.mean()), 1.96 * float(row.std()) / IMAGES**0.5
    return Effect(mean, mean - half, mean + half, "images")


def _items(values: Mapping[str, Array]) -> Items:
    return Items("images", KEYS, KEYS, ("",) * IMAGES, values, {"hit": Statistic("hit", "items")})
