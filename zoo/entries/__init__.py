"""The families: their backbones, the architecture of their networks, and the authors' names of the parts.

What a family shares and its architecture are explicit frozen data, in one file for each kind of training.
Each backbone is a row of ``backbones.csv``. Imports nothing heavy.
"""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from layerboard.zoo.entries import contrastive, distilled, masked, mini, supervised, teachers
from layerboard.zoo.entries.architecture import Architecture
from layerboard.zoo.entries.family import NetworkSize, entry
from layerboard.zoo.spec import BackboneSpec, Retraining, WeightFile

_FILES = (supervised, contrastive, distilled, masked, teachers)
_BY_NAME = {each.__name__.rpartition(".")[2]: each for each in _FILES}

TABLE = Path(__file__).parent / "backbones.csv"
"""One row for each backbone, family by family as tables have them.

``family`` is a file here and a name in it, such as ``supervised.DEIT``, and ``source`` what is inserted into
its repository or files. ``blocks`` and ``widths`` have a number for each stage; `NetworkSize` and `entry` say
what the numbers are. ``reference`` and ``change`` are those of `Retraining`. The others are what is known of
the published file, as `WeightFile` has it: a commit is pinned as ``revision`` if two independent sources name
it, or if one saw it as the newest of the repository.
"""


def _number(text: str) -> int | None:
    return int(text) if text else None


def _backbone(row: Mapping[str, str]) -> BackboneSpec:
    """The backbone of a row of the table."""
    file, _, name = row["family"].partition(".")
    family: BackboneSpec = getattr(_BY_NAME[file], name)
    blocks, widths = (tuple(map(int, row[column].split())) for column in ("blocks", "widths"))
    size = NetworkSize(blocks, widths, _number(row["heads"]), _number(row["mlp"]), row["gated"] == "yes")
    pinned = replace(family, revision=row["revision"] or None)
    return replace(
        entry(pinned, row["entry"], row["source"], size, int(row["patch"]), int(row["parameters"])),
        file=WeightFile(row["file"], row["sha256"], _number(row["size"]), row["noted_by"], row["note"]),
        retrained=Retraining(row["reference"], row["change"]) if row["reference"] else None,
    )


with TABLE.open(encoding="utf-8", newline="") as _lines:
    _IN_TABLE = tuple(map(_backbone, csv.DictReader(_lines)))

SPECS: tuple[BackboneSpec, ...] = (
    *_IN_TABLE,
    teachers.floor("random", 768, 16, 224),
    teachers.raw_pixels("raw-pixels", 16, 224),
    *mini.ENTRIES,
)
"""Every backbone in the order of the tables: family by family; then the mini suites."""

ARCHITECTURES: tuple[Architecture, ...] = tuple(each for file in _FILES for each in file.ARCHITECTURES)
"""Every supported architecture; of two with one model type the one for a single class comes first."""
