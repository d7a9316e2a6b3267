"""Options of the commands that write or check what was measured, each declared once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from benchmark.request import parsers
from benchmark.request.option import Option

ComparisonFormat = Literal["table", "csv", "json"]
FigureFormat = Literal["svg", "pdf", "both"]

Texts = str | Sequence[str]
Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True, kw_only=True)
class LeaderboardRequest:
    """Which pages to write or to check; the command ``leaderboard`` has exactly these options."""

    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and tables.", parsers.path, short="-o"
    )
    tables: Option[str | Path | None, Path | None] = Option(
        None, "Where the pages go.", parsers.optional_path, shown="OUTPUT/tables"
    )
    check: Option[bool, bool] = Option(
        False, "Compare the records with the committed pages, or with --baseline.", parsers.switch
    )
    format: Option[str, str] = Option(
        "csv,md", "What to write: csv, md, html; several with commas.", parsers.text
    )
    published: Option[Paths, tuple[Path, ...]] = Option(
        (),
        "CSV files of numbers of others, in the columns of leaderboards/published: a section of the page.",
        parsers.paths,
        several=True,
    )
    baseline: Option[str | Path | None, Path | None] = Option(
        None,
        "With --check: an output folder, or a folder of the leaderboard's CSV files, to compare with.",
        parsers.optional_path,
    )
    backbones: Option[Texts, tuple[str, ...]] = Option(
        (),
        "With --baseline: names or patterns ('dino-*').",
        parsers.names,
        short="-b",
        several=True,
        shown="all of the baseline",
    )
    tolerance: Option[float | None, float | None] = Option(
        None, "With --baseline: points by which a score may move.", parsers.real, shown="0.5"
    )


@dataclass(frozen=True, kw_only=True)
class ReproduceRequest:
    """Which published numbers to compare with; the command ``reproduce`` has exactly these options."""

    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and tables.", parsers.path, short="-o"
    )
    backbones: Option[Texts, tuple[str, ...]] = Option(
        (), "Names or patterns ('dino-*').", parsers.names, short="-b", several=True, shown="all"
    )
    tasks: Option[Texts, tuple[str, ...]] = Option(
        (), "Tasks.", parsers.names, short="-t", several=True, shown="all"
    )
    source: Option[Texts, tuple[str, ...]] = Option(
        (), "Sources of published numbers.", parsers.names, several=True, shown="all"
    )
    format: Option[ComparisonFormat, ComparisonFormat] = Option(
        "table",
        "A table, or everything as CSV or JSON.",
        parsers.choice,
        choices=get_args(ComparisonFormat),
    )
    all: Option[bool, bool] = Option(
        False, "Show numbers that were not run or are not comparable, too.", parsers.switch
    )
    published: Option[Paths, tuple[Path, ...]] = Option(
        (),
        "CSV files of further published numbers, in the columns of leaderboards/published.",
        parsers.paths,
        several=True,
    )


@dataclass(frozen=True, kw_only=True)
class ShowRequest:
    """Which answers to show; the command ``show`` and the function ``benchmark.best`` have these options."""

    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and tables.", parsers.path, short="-o"
    )
    suite: Option[str | None, str | None] = Option(
        None, "One of the folder's suites.", parsers.text, shown="all of them"
    )
    tasks: Option[Texts, tuple[str, ...]] = Option(
        (), "Tasks.", parsers.names, short="-t", several=True, shown="all"
    )
    json: Option[bool, bool] = Option(False, "For machines.", parsers.switch)


@dataclass(frozen=True, kw_only=True)
class ReportRequest:
    """What to look at, and in which form; the command ``report`` has exactly these options."""

    output: Option[str | Path, Path] = Option(
        "results", "Folder of records and tables.", parsers.path, short="-o"
    )
    suite: Option[str | None, str | None] = Option(
        None, "A suite of the folder.", parsers.text, shown="all, a page each"
    )
    to: Option[str | Path | None, Path | None] = Option(
        None, "Folder for what is written.", parsers.optional_path, shown="OUTPUT/report"
    )
    figures: Option[FigureFormat | None, FigureFormat | None] = Option(
        None,
        "Write the charts as files, too, in a style fit for papers.",
        parsers.choice,
        choices=get_args(FigureFormat),
        shown="no files",
    )
    site: Option[str | Path | None, Path | None] = Option(
        None,
        "Write a folder for any static host, or a Hugging Face Space of sdk static.",
        parsers.optional_path,
    )
    published: Option[Paths, tuple[Path, ...]] = Option(
        (),
        "CSV files of numbers of others, in the columns of leaderboards/published: marks in the charts.",
        parsers.paths,
        several=True,
    )
