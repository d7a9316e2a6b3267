"""A leaderboard: everything that the records of one suite say, computed once for pages and reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.display import page_name
from layerboard.leaderboards.board import frames
from layerboard.leaderboards.board.column import Column, columns_of
from layerboard.leaderboards.board.differences import Bounds, Standings, bounds_of, column_standing
from layerboard.leaderboards.board.near_duplicates import read_near_duplicates
from layerboard.leaderboards.published.literature import Published
from layerboard.leaderboards.records.key import COMPARISON_TASK
from layerboard.leaderboards.records.record import Subject, of_suite, unlike_companions
from layerboard.tasks.framework.registry import COST, DIRECTIONS, DRIFT
from layerboard.tasks.framework.transforms import is_compression
from layerboard.zoo.spec import Retraining


@dataclass(frozen=True, eq=False)
class Board:
    """The newest records of one suite, and what is derived from them, computed once on demand.

    `Board.of` makes one from any records. ``items`` and ``arrays`` are the folders of per-item measurements
    and of arrays of analyses; ``published`` are published numbers to show beside those measured here;
    ``trainings`` are the backbones that are other trainings of others, by name.
    """

    suite: str  # "" for records of any suite
    records: pd.DataFrame  # one per `leaderboards.records.key.RecordKey`, sorted by it
    items: Path | None = None
    arrays: Path | None = None
    published: tuple[Published, ...] = ()
    trainings: Mapping[str, Retraining] = field(default_factory=dict)
    part: str = ""  # suffix of the names of its pages, such as ``.inside`` for analyses

    @classmethod
    def of(
        cls,
        records: pd.DataFrame,
        suite: str = "",
        *,
        items: Path | None = None,
        arrays: Path | None = None,
        published: Sequence[Published] = (),
        trainings: Mapping[str, Retraining] | None = None,
    ) -> "Board":
        """The board of the records of a suite, in any order, or of all records if no suite is named."""
        records = frames.latest(of_suite(records, suite) if suite else records)
        return cls(suite, records, items, arrays, tuple(published), trainings or {})

    def __len__(self) -> int:
        return len(self.records)

    @property
    def page(self) -> str:
        """Name of its page files, without an extension."""
        return page_name(self.suite) + self.part

    def only(self, records: pd.DataFrame) -> "Board":
        """The board of a part of its records, or of changed ones; each key once and in order."""
        return replace(self, records=records)

    @cached_property
    def groups(self) -> tuple[frames.RecordGroup, ...]:
        """The board's records by task, dataset, protocol and data."""
        return frames.groups_of(self.records)

    @cached_property
    def measured(self) -> pd.DataFrame:
        """Records that rank or compare layers: no analyses and no costs."""
        return self.records[~frames.is_analysis(self.records)]

    @cached_property
    def plain(self) -> pd.DataFrame:
        """Records of `measured` for single layers without transforms."""
        return self.measured[(self.measured["transform"] == "") & ~frames.is_set(self.measured)]

    @cached_property
    def plain_backbones(self) -> tuple[frames.BoardBackbone, ...]:
        return frames.backbones_of(self.plain)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Scores of single layers without transforms: no comparisons, no single heads, no sets."""
        alone = (self.plain["other"] == "") & (self.plain["head"] == -1)
        return self.plain[alone & (self.plain["task"] != COMPARISON_TASK)]

    @cached_property
    def changed(self) -> pd.DataFrame:
        """Records of transformed or compressed features, without layer sets."""
        return self.measured[(self.measured["transform"] != "") & ~frames.is_set(self.measured)]

    @cached_property
    def compressed(self) -> pd.DataFrame:
        """Records of compressed vectors."""
        return self.changed[self.changed["transform"].map(is_compression).astype(bool)]

    @cached_property
    def sets(self) -> pd.DataFrame:
        return self.measured[frames.is_set(self.measured)]

    @cached_property
    def analyses(self) -> "Board":
        """The board of its analyses, which describe and do not rank, without costs."""
        rows = self.records[frames.is_analysis(self.records) & (self.records["task"] != COST)]
        return replace(self, records=rows, part=".inside")

    @cached_property
    def costs(self) -> "Board":
        """The board of its costs, one group per device."""
        return replace(self, records=self.records[self.records["task"] == COST], part=".cost")

    @cached_property
    def backbones(self) -> tuple[frames.BoardBackbone, ...]:
        """All backbones, including those that were only compared with others, in table order.

        If analyses and scores tell different depths, that of the scores counts.
        """
        backbones = {backbone.name: backbone for backbone in frames.backbones_of(self.records)}
        backbones |= {backbone.name: backbone for backbone in self.plain_backbones}
        return tuple(sorted(backbones.values(), key=lambda backbone: backbone.rank))

    @cached_property
    def labels(self) -> Mapping[str, str]:
        return {backbone.name: backbone.label for backbone in self.backbones}

    @cached_property
    def ranks(self) -> Mapping[str, int]:
        """Positions of its backbones in tables, by name."""
        return {backbone.name: rank for rank, backbone in enumerate(self.backbones)}

    @cached_property
    def unlike(self) -> Mapping[str, Sequence[Subject]]:
        """Subjects whose files are not those of their records, hence unused, by kind such as ``items``."""
        kinds = [(self.items, ".parquet"), (self.items and self.items.with_name("examples"), ".npz")]
        records, kinds = (self.records, [(self.arrays, ".npz")]) if self.part else (self.measured, kinds)
        return {at.name: unlike_companions(records, at, ending) for at, ending in kinds if at is not None}

    @cached_property
    def scored_backbones(self) -> tuple[frames.BoardBackbone, ...]:
        return frames.backbones_of(self.scores)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        return columns_of(self.scores)

    @cached_property
    def best(self) -> pd.DataFrame:
        """The records of the best layer of every backbone in every column, in table order.

        A backbone without a score in a column has no row there; the random floor has none at all.
        """
        parts = [column.best for column in self.columns if len(column.best)]
        return frames.in_order(pd.concat(parts or [self.scores[:0]]), self.backbones)

    @cached_property
    def bounds(self) -> Mapping[tuple[str, str, str, str], Bounds]:
        """How far the layers of each column may be below its best, by `Column.key`."""
        return {column.key: bounds_of(column, column.family, self.items) for column in self.columns}

    @cached_property
    def standings(self) -> Standings:
        """What the items of each column tell about the order of its backbones, by `Column.key`."""
        if self.items is None:
            return {}
        every = {each.key: column_standing(each, self.bounds[each.key], self.items) for each in self.columns}
        return {key: standing for key, standing in every.items() if standing}

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What makes the scores of some datasets doubtful, one sentence each: near-duplicates."""
        if self.items is None:
            return ()
        known = read_near_duplicates(self.items.parent)
        names = dict.fromkeys(column.dataset for column in self.columns)
        return tuple(known[name].warning for name in names if name in known and known[name].warning)

    @cached_property
    def compared(self) -> bool:
        """Whether any two backbones of a column were compared."""
        return any(bounds.maybe or bounds.worse for bounds in self.bounds.values())

    @cached_property
    def has_intervals(self) -> bool:
        """Whether any score of a backbone has an interval, not counting the random floor."""
        return bool(self.scores.loc[~frames.is_floor(self.scores), "ci_low"].notna().any())

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """CKA between two layers, turned so that the backbone higher in the tables is first."""
        no_cka = (self.plain["task"] == DRIFT) | (self.plain["metric"] == DIRECTIONS)
        return frames.pair_rows(self.plain[(self.plain["other"] != "") & ~no_cka], self.backbones)

    @cached_property
    def block_pairs(self) -> pd.DataFrame:
        """CKA between two blocks, from 1 on."""
        blocks = (self.pairs["tap"] == "block") & (self.pairs["other_tap"] == "block")
        return self.pairs[blocks & (self.pairs["layer"] >= 1) & (self.pairs["other_layer"] >= 1)]

    @cached_property
    def last_blocks(self) -> pd.DataFrame:
        """CKA between the last blocks of two backbones."""
        depths = {backbone.name: backbone.depth for backbone in self.backbones}
        pairs = self.block_pairs[self.block_pairs["layer"] == self.block_pairs["backbone"].map(depths)]
        return pairs[pairs["other_layer"] == pairs["other"].map(depths)]
