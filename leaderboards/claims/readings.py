"""What claims read from a board: curves over depth, heads, maps, CKA, and scores by item."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.differences import known_items, sides_of
from layerboard.leaderboards.board.frames import INTERVAL, PIXELS, between
from layerboard.leaderboards.claims.effects import AbsentError, Effect
from layerboard.leaderboards.claims.networks import Group, KnownNetwork
from layerboard.leaderboards.inside.evidence import Evidence
from layerboard.leaderboards.records.files import scored_path
from layerboard.leaderboards.records.items import Place, read_items
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.leaderboards.records.record import companion
from layerboard.tasks.framework.assess import group_differences
from layerboard.tasks.framework.base import Items
from layerboard.tasks.metrics.arrays import Floats
from layerboard.zoo.errors import InputError

CONTEST_DRAWS, MANY_DRAWS = 20_000, 2_000  # simulated values of two groups, and of many
TOKENS = "patch"  # of the CKA that claims are about
Layers = Sequence[tuple[KnownNetwork, Place]]  # of several networks


class Readings:
    """The numbers of a board as claims need them, each read once.

    Of several datasets or protocols of a task the first counts, in the order of pages.
    """

    def __init__(self, board: Board) -> None:
        self.board = board
        self._cka: dict[tuple[str, str], tuple[Floats, Floats]] = {}
        self._items: dict[tuple[str, str], Mapping[Place, Items]] = {}

    @cached_property
    def networks(self) -> tuple[KnownNetwork, ...]:
        """The trained networks of the board that the registry knows, in the order of tables."""
        known = [(self.board.specs.get(each.name), each) for each in self.board.backbones]
        return tuple(
            KnownNetwork(spec, each.label)
            for spec, each in known
            if spec is not None and spec.trained and spec.depth == each.depth
        )

    @cached_property
    def evidence(self) -> Mapping[str, Evidence]:
        """The analyses by task."""
        board = self.board.analyses
        every = [Evidence(group, board.backbones, board.arrays) for group in reversed(board.groups)]
        return {evidence.analysis.task: evidence for evidence in every if len(evidence.analysis.metrics)}

    @cached_property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the leaderboard by task."""
        return {column.task: column for column in reversed(self.board.columns)}

    def has(self, task: str) -> bool:
        """Whether the board has numbers of a task."""
        return (
            task in self.evidence
            or task in self.columns
            or (task == COMPARISON_TASK and len(self.board.block_pairs) > 0)
        )

    def each(self, groups: Iterable[Group], effect: Callable[..., Effect]) -> list[Effect]:
        """The effect of each group that has what it needs, named by its networks.

        Raises AbsentError with the first reason if none has.
        """
        effects, reasons = list[Effect](), list[str]()
        for group in groups:
            try:
                effects.append(effect(*group).of(" and ".join(network.label for network in group)))
            except AbsentError as error:
                reasons.append(str(error))
        if not effects:
            raise AbsentError(reasons[0] if reasons else "no network has what it needs")
        return effects

    def curve(
        self, task: str, metric: str, network: KnownNetwork, pooling: str, tap: str = "attention"
    ) -> Floats:
        """A metric of every block of a network [blocks]; NaN where it has none."""
        return self.heads(task, metric, network, pooling, tap, of_heads=False)[:, 0]

    def heads(
        self,
        task: str,
        metric: str,
        network: KnownNetwork,
        pooling: str,
        tap: str = "attention",
        *,
        of_heads: bool = True,
    ) -> Floats:
        """A metric of every head [blocks heads], or of all together [blocks 1]."""
        if task not in self.evidence:
            raise AbsentError(f"needs `{task}`")
        rows = self._by_backbone(task, metric).get(network.name)
        if rows is not None:
            rows = rows[
                (rows["pooling"] == pooling) & (rows["tap"] == tap) & ((rows["head"] >= 0) == of_heads)
            ]
        if rows is None or rows.empty:
            raise AbsentError(f"{network.label} has no `{metric}` of {pooling} tokens")
        heads = rows["head"].to_numpy(int).clip(0)
        table = np.full((network.depth, 1 + heads.max()), np.nan)
        table[rows["layer"].to_numpy(int) - 1, heads] = rows["value"].to_numpy(float)
        return table

    def _by_backbone(self, task: str, metric: str) -> Mapping[str, pd.DataFrame]:
        rows = self.evidence[task].rows
        rows = rows[(rows["metric"] == metric) & (rows["layer"] >= 1)]
        return {str(name): part for name, part in rows.groupby("backbone")}

    def array(self, task: str, name: str, axes: int, network: KnownNetwork) -> Floats:
        """An array of an analysis, with so many axes."""
        array = self.evidence[task].array(name, axes, network.name) if task in self.evidence else None
        if array is None:
            raise AbsentError(f"{network.label} has no array `{name}` of `{task}`")
        return np.asarray(array, None if array.dtype.kind in "US" else np.float64)

    def cka(self, first: KnownNetwork, second: KnownNetwork, *, low: bool = False) -> Floats:
        """CKA of patch tokens of all blocks of two networks [blocks of first, of second], or its lower ends.

        NaN for a pair of blocks that was not compared.
        """
        if not (ends := self._cka.get((first.name, second.name))):
            rows = self.board.block_pairs
            rows = between(rows[rows["pooling"] == TOKENS], first.name, second.name)
            tables = tuple(np.full((first.depth, second.depth), np.nan) for _ in "vl")
            for table, name in zip(tables, ("value", "ci_low"), strict=True):
                table[rows["layer"].to_numpy(int) - 1, rows["other_layer"].to_numpy(int) - 1] = rows[name]
            ends = self._cka[first.name, second.name] = tables[0], tables[1]
        if not np.isfinite(ends[0]).any():
            raise AbsentError(f"{first.label} and {second.label} were not compared by CKA")
        return ends[low]

    def column(self, task: str) -> Column:
        if task not in self.columns:
            raise AbsentError(f"needs `{task}`")
        return self.columns[task]

    def scores(self, task: str, network: KnownNetwork) -> Floats:
        """The score of every block in the pooling that is shown [blocks]; NaN where it has none."""
        rows = self.column(task).candidates
        rows = rows[rows["backbone"] == network.name]
        if rows.empty:
            raise AbsentError(f"{network.label} has no score of `{task}`")
        scores = np.full(network.depth, np.nan)
        scores[rows["layer"].to_numpy(int) - 1] = rows["value"]
        return scores

    def best(self, task: str) -> Mapping[str, Effect]:
        """The score of the best layer of each backbone, by name, with its interval."""
        rows = self.column(task).best
        fields = rows[["backbone", *INTERVAL, "unit"]].itertuples(index=False, name=None)
        return {
            str(name): Effect(float(value), float(low), float(high), str(unit))
            for name, value, low, high, unit in fields
        }

    def floor(self, task: str, pooling: str) -> float:
        """The highest score of any untrained network or random draw in a column."""
        rows = self.column(task).scored
        rows = rows[~rows["trained"].astype(bool) & (rows["family"] != PIXELS) & (rows["pooling"] == pooling)]
        if rows["value"].isna().all():
            raise AbsentError(f"needs the random floor of `{task}`")
        return float(rows["value"].max())

    def in_pooling(self, task: str, network: KnownNetwork, pooling: str) -> list[Effect]:
        """The scores of the blocks of a network in one pooling, with their intervals."""
        rows = self.column(task).family
        rows = rows[(rows["backbone"] == network.name) & (rows["pooling"] == pooling)]
        if rows.empty:
            raise AbsentError(f"{network.label} has no score of `{task}` in {pooling} vectors")
        fields = rows[["layer", *INTERVAL, "n", "unit"]].itertuples(index=False, name=None)
        return [
            Effect(float(value), float(low), float(high), f"{n} {unit}", f"block {layer}")
            for layer, value, low, high, n, unit in fields
        ]

    def places(self, task: str, network: KnownNetwork, pooling: str = "") -> list[Place]:
        """The scored blocks of a network, in the pooling that is shown or another, the best first."""
        column = self.column(task)
        rows = column.family[column.family["backbone"] == network.name]
        rows = rows[rows["pooling"] == (pooling or column.poolings.get(network.name))]
        rows = rows.sort_values("value", ascending=False, kind="stable")
        if rows.empty:
            raise AbsentError(f"{network.label} has no score of `{task}`")
        return [side.place for side in sides_of(rows, network.name, sort=False)]

    def contest(self, task: str, first: Layers, second: Layers) -> Effect:
        """The best of some layers minus the best of others, whichever these are, on the same items."""
        return self.contests(task, [first, second], [1])[0]

    def contests(self, task: str, sides: Sequence[Layers], asked: Sequence[int]) -> list[Effect]:
        """For some of several groups of layers, the best of all others minus the best of the group."""
        items = [[self._item(task, network, at) for network, at in side] for side in sides]
        if not all(items):
            raise AbsentError(f"`{task}` has too few layers to compare")
        draws = CONTEST_DRAWS if len(sides) == 2 else MANY_DRAWS
        groups = group_differences(items, self.column(task).metric, asked, draws)
        if groups is None:
            raise AbsentError(f"`{task}` was not scored on the same items")
        units = len({*items[0][0].clusters})
        unit = f"{units} {items[0][0].unit if units == len(items[0][0].keys) else 'groups'}"
        return [Effect(each.value, each.low, each.high, unit, task) for each in groups]

    def _item(self, task: str, network: KnownNetwork, place: Place) -> Items:
        items = self.items(task, network)
        if place not in items:
            raise AbsentError(f"{network.label} has no per-item measurements of `{task}`")
        return items[place]

    def items(self, task: str, network: KnownNetwork) -> Mapping[Place, Items]:
        """The per-item measurements of every layer of a network; empty without any."""
        key = (task, network.name)
        if key not in self._items:
            self._items[key] = self._read_items(task, network)
        return self._items[key]

    def _read_items(self, task: str, network: KnownNetwork) -> Mapping[Place, Items]:
        folder = self.board.items
        if folder is None:
            return {}
        if task in self.columns:
            column = self.columns[task]
            sides = sides_of(column.family, network.name)
            return known_items(column, sides, folder) if sides else {}
        try:
            return read_items(companion(folder, scored_path(self.evidence[task].key, network.name)))
        except (InputError, KeyError):
            return {}
