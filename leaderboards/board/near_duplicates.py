"""Near-duplicates among the user's own images, as a run counts them: a small table in the output folder."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import pandas as pd

from layerboard.leaderboards.blocks.csv import csv_text, read_csv_table
from layerboard.leaderboards.blocks.display import plain_name
from layerboard.leaderboards.board.column import Column
from layerboard.leaderboards.board.frames import PIXELS
from layerboard.leaderboards.records.files import NEAR_DUPLICATES
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.spec import Variant

MANY = 0.02  # a larger share of images with a near-duplicate is said beside the scores

WARNING = (
    "At least {share} % of the {images} images of {dataset} have a near-duplicate among the others, by the "
    "vectors of {backbone}, and no groups are given: scores that let a copy find its original are too high, "
    "and their intervals too narrow. near-duplicate-pairs.csv lists pairs, and run --groups keeps images "
    "of one group together."
)


@dataclass(frozen=True, slots=True)
class NearDuplicates:
    """How many images of a dataset without groups have a near-duplicate among the others."""

    dataset: str  # its name in records, with the digest of its content
    backbone: str  # whose stored vectors were compared
    images: int
    share: float  # of the images, 0 to 1

    @property
    def warning(self) -> str:
        """A warning to stand beside the scores; "" for few near-duplicates."""
        if self.share <= MANY:
            return ""
        said = {"share": f"{100 * self.share:.0f}", "images": f"{self.images:,}", "backbone": self.backbone}
        return WARNING.format(dataset=plain_name(self.dataset), **said)


def find_judge(columns: Iterable[Column]) -> str:
    """The trained backbone by whose vectors images may be called alike; "" for none.

    It is the best one of the first column in which raw pixels do not score higher, and no earlier checkpoint
    of a training: to a network that has learned little all images are alike.
    """
    for column in columns:
        pixels = column.scored.loc[column.scored["family"] == PIXELS, "value"].max()
        names = sorted(column.best["backbone"], key=lambda name: Variant.of(name).checkpoint[1])
        latest = {Variant.of(name).checkpoint[0]: name for name in names}
        trained = column.best["trained"].astype(bool) & column.best["backbone"].isin(latest.values())
        top = column.best[trained].nlargest(1, "value")
        if len(top) and not pixels > top["value"].iloc[0]:
            return str(top["backbone"].iloc[0])
    return ""


def read_near_duplicates(output: Path) -> dict[str, NearDuplicates]:
    """The table of an output folder, by dataset; empty if there is none, or another file in its place."""
    try:
        frame = read_csv_table(output / NEAR_DUPLICATES)
        rows = frame[[field.name for field in fields(NearDuplicates)]].itertuples(index=False, name=None)
        counts = [NearDuplicates(name, by, int(images), float(share)) for name, by, images, share in rows]
    except (OSError, ValueError, KeyError):
        return {}
    return {each.dataset: each for each in counts if 0 <= each.share <= 1}


def write_near_duplicates(counts: dict[str, NearDuplicates], output: Path) -> None:
    """Write the table of an output folder."""
    write_whole(output / NEAR_DUPLICATES, csv_text(pd.DataFrame([asdict(each) for each in counts.values()])))
