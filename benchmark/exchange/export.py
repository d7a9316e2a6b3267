"""What was measured as files for papers, spreadsheets and model cards."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pandas as pd

from benchmark.exchange.comparison import records_of
from benchmark.request.exchange import ExportRequest
from leaderboards.choices.selection import is_analysis, is_floor, newest
from leaderboards.choices.ties import column_ties
from leaderboards.display import page_name
from leaderboards.hub import HubBenchmark, eval_results, model_indices
from leaderboards.pages.build import write_pages
from leaderboards.pages.latex import latex_table
from leaderboards.pages.scores import has_intervals, main_table
from leaderboards.records.files import safe_name
from leaderboards.records.record import of_suite, suites_of
from zoo.atomic import whole_file
from zoo.errors import InputError, unknown

CAPTION = "The best layer of each backbone (layer/depth), in percent; the best in bold."
INTERVALS = r"$\pm$ is half the 95\,\% interval."
TIED = r"With the best, what $^{\approx}$ marks holds the true best with 95\,\%."
ARROW = r"$\uparrow$: another pooling of the layers scores higher."
PARTIAL = r"\dag: on a part of the dataset."


def exported(request: ExportRequest) -> list[Path]:
    """Write what was asked for; gives the files.

    Raises:
        InputError: There are no records, none of a backbone, or nothing to write.
    """
    if request.benchmarks and request.form != "hub":
        raise InputError(f"--benchmarks is for hub; leave it out of {request.form}")
    records = chosen(records_of(request.output), request.backbones)
    folder, items = request.to or request.output / "export", request.output / "items"
    if request.form == "csv":
        return write_pages(records, folder, items, ["csv"])
    files = dict(_latex(records, items) if request.form == "latex" else _hub(records, request))
    if not files:
        raise InputError("there is nothing to export: no backbone has a score of a task that ranks")
    for name, text in files.items():
        with whole_file(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in files]


def chosen(records: pd.DataFrame, patterns: Sequence[str]) -> pd.DataFrame:
    """The records of some backbones, and of the random floor; all where no pattern is given.

    Raises:
        InputError: A pattern fits no backbone.
    """
    if not patterns:
        return records
    names = sorted({str(name) for name in records["backbone"]})
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise unknown("backbone", pattern, names)
    kept = {name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)}
    pairs = (records["other"] == "") | records["other"].isin(kept)
    return records[(records["backbone"].isin(kept) & pairs) | is_floor(records)].reset_index(drop=True)


def _latex(records: pd.DataFrame, items: Path) -> Iterator[tuple[str, str]]:
    """For each suite that ranks, its table."""
    for suite in suites_of(records):
        own = newest(of_suite(records, suite))
        own = own[~is_analysis(own)]
        table = main_table(own, column_ties(own, items))
        if len(table.columns) <= 2:
            continue
        text = " ".join(str(cell) for row in table.itertuples(index=False) for cell in row)
        notes = [CAPTION, *([INTERVALS, TIED] if has_intervals(own) else [])]
        notes += [ARROW] if "↑" in text else []
        notes += [PARTIAL] if any("†" in column for column in table.columns) else []
        yield f"{page_name(suite)}.tex", latex_table(table, 2, notes, page_name(suite))


def _hub(records: pd.DataFrame, request: ExportRequest) -> Iterator[tuple[str, str]]:
    """For each trained backbone its files, in a folder of its own."""
    for name, text in model_indices(records).items():
        yield f"{safe_name(name)}/model-index.yaml", text
    benchmarks = {dataset: _benchmark(address) for dataset, address in request.benchmarks.items()}
    for name, files in eval_results(records, benchmarks).items():
        for file, text in files.items():
            yield f"{safe_name(name)}/.eval_results/{safe_name(file)}", text


def _benchmark(address: str) -> HubBenchmark:
    """A benchmark of the Hub; raises InputError where the address is none."""
    found = re.fullmatch(r"([\w.-]+/[\w.-]+):([\w.-]+)", address)
    if found is None:
        raise InputError(f"--benchmarks takes DATASET=OWNER/NAME:TASK; found {address!r}")
    return HubBenchmark(found[1], found[2])
