"""Options of the commands that compare, merge and hand on what runs have written, each declared once."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmark.request import parsers
from benchmark.request.option import Option
from benchmark.request.request import GivenNetwork

ComparedLayers = Literal["best", "same"]
ExportForm = Literal["latex", "csv", "hub"]

Texts = str | Sequence[str]
Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True)
class CompareRequest:
    """Which backbones to compare, and where; the command ``compare`` has exactly these options."""

    first: Option[str | GivenNetwork, str] = Option(..., "A backbone that was run.", parsers.run_name)
    second: Option[str | GivenNetwork, str] = Option(..., "Another one.", parsers.run_name)
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


@dataclass(frozen=True)
class MergeRequest:
    """Which output folders become one; the command ``merge`` has exactly these options."""

    folders: Option[Paths, tuple[Path, ...]] = Option(
        ..., "Output folders of runs, two or more.", parsers.paths, several=True
    )
    _: KW_ONLY
    output: Option[str | Path | None, Path | None] = Option(
        None, "Folder of the result; what it has already stays.", parsers.optional_path, short="-o"
    )


@dataclass(frozen=True)
class ExportRequest:
    """What to hand on, and in which form; the command ``export`` has exactly these options."""

    form: Option[ExportForm, ExportForm] = Option(
        ...,
        "The table of a paper, the numbers of the leaderboard, or the results of a model card of the Hub.",
        parsers.choice,
        choices=get_args(ExportForm),
    )
    _: KW_ONLY
    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and per-item files.", parsers.path, short="-o"
    )
    to: Option[str | Path | None, Path | None] = Option(
        None, "Folder for what is written.", parsers.optional_path, shown="OUTPUT/export"
    )
    backbones: Option[Texts, tuple[str, ...]] = Option(
        (), "Names or patterns ('dino-*').", parsers.names, short="-b", several=True, shown="all"
    )
    benchmarks: Option[Texts | Mapping[str, str], Mapping[str, str]] = Option(
        (),
        "hub: DATASET=OWNER/NAME:TASK, a dataset of ours that is this benchmark of the Hub.",
        parsers.assignments,
        several=True,
    )
