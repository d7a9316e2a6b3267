"""Options of the commands of ``data``, each declared once."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from benchmark.request import parsers
from benchmark.request.option import Option


@dataclass(frozen=True)
class PackRequest:
    """Which datasets to write as parquet, and where; the command ``data pack`` has exactly these options."""

    data: Option[str | Path, Path] = Option(..., "Folder that holds the real datasets.", parsers.path)
    _: KW_ONLY
    to: Option[str | Path | None, Path | None] = Option(
        None, "Folder of the pack; datasets that it has already stay.", parsers.optional_path
    )
    datasets: Option[str | Sequence[str], tuple[str, ...]] = Option(
        (),
        "Datasets by the names that `check` shows.",
        parsers.listed,
        several=True,
        shown="all that are there",
    )
    shard_megabytes: Option[int, int] = Option(
        500, "Megabytes of the files of one parquet file at most.", parsers.whole, least=1
    )
