"""Two backbones of an output folder, compared."""

from pathlib import Path

import pandas as pd

from benchmark.request.exchange import CompareRequest
from leaderboards.choices.versus import Match, match
from leaderboards.records.record import read_records
from zoo.errors import InputError


def records_of(output: Path) -> pd.DataFrame:
    """All records of an output folder; raises InputError where there is none, or it has none."""
    if not output.is_dir():
        raise InputError(
            f"expected a folder of records and tables at {output}, which does not exist; "
            "`python -m benchmark run` writes one, --output names it"
        )
    return read_records([output / "records"])


def matched(request: CompareRequest) -> Match:
    """The comparisons that were asked for; raises InputError where nothing can be compared."""
    names = (request.first, request.second)
    records = records_of(request.output)
    return match(records, request.output / "items", names, request.layers, request.tasks)
