"""Options of the commands that compare, merge and hand on what runs have written, each declared once."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmark.request import parsers
from benchmark.request.option import Option

ComparedLayers = Literal["best", "same"]
ExportForm = Literal["latex", "csv", "hub"]

Texts = str | Sequence[str]
Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class CompareRequest:
    """Which backbones to compare, and where; the command ``compare`` has exactly these options."""

    first: Option[str, str] = Option(..., "A backbone that was run.", parsers.text)
    second: Option[str, str] = Option(..., "Another one.", parsers.text)
    _: KW_ONLY
    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and per-item files.", parsers.path, short="-o"
    )
    tasks: Option[Texts, tuple[str, ...]] = Option(
        (), "Tasks to compare them in.", parsers.names, short="-t", several=True, shown="all that both ran"
    )
    layers: Option[ComparedLayers, ComparedLayers] = Option(
        "best",
        "best: each one's best layer; same: every layer with the other's at the same share of the depth.",
        parsers.choice,
        choices=get_args(ComparedLayers),
    )
    json: Option[bool, bool] = Option(False, "For machines.", parsers.switch)
