"""The command `leaderboard`: write the pages, or compare them with written ones or a baseline."""

from pathlib import Path
from typing import TYPE_CHECKING

from layerboard.benchmark.commands.command import boards_of, command, records_of, say
from layerboard.benchmark.commands.result import table_text
from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Option, OptionalPath, Plain, Words
from layerboard.benchmark.forms.request import ResultsOptions
from layerboard.zoo.errors import InputError, ensure, some

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 20  # maximum rows of a table of moved numbers; the rest are counted


class LeaderboardRequest(ResultsOptions):
    """Options of `leaderboard`: the pages to write or to check."""

    tables: OptionalPath = Option(
        None,
        "Folder to write the pages to, or with --check to compare with.",
        usual="OUTPUT/tables; with --check the pages of the package",
    )
    check: Plain[bool] = Option(False, "Compare with the pages in --tables, or --baseline; write nothing.")
    literature: Plain[bool] = Option(
        False, "Write published numbers alone: a page to search, literature.html, and its CSV; needs no run."
    )
    baseline: OptionalPath = Option(
        None, "With --check: an output folder, or a folder of the leaderboard's CSV files, to compare with."
    )
    backbones: Words = Option(
        (), "With --baseline: names or patterns.", also="-b", usual="all of the baseline"
    )
    tolerance: Plain[float | None] = Option(
        None, "With --baseline: points a score may move.", parsers.not_negative, usual="0.5"
    )


@command("leaderboard", LeaderboardRequest)
def leaderboard_command(request: LeaderboardRequest) -> int:
    """Write the leaderboards of a run, or check written ones.

    With `--check --baseline DIR`, a regression test: exit code 1 and a table of the scores that changed.

    Example: `layerboard leaderboard --check --baseline baseline -b my-net --tolerance 1`
    """
    from layerboard.leaderboards.records.record import read_records
    from layerboard.leaderboards.writers.build import write_board

    if request.baseline is None and (request.backbones or request.tolerance is not None):
        raise InputError("--backbones and --tolerance need --check --baseline DIR")
    ensure(request.baseline is None or request.check, "--baseline needs --check")
    output = request.output
    if request.literature:
        return _literature(request)
    records = read_records([output / "records"])
    if request.baseline is not None:
        return _compare(records, request.baseline, request)
    if request.check:
        return _check(records, request.tables)
    folder = request.tables or output / "tables"
    for path in sorted(path for board in boards_of(records, output) for path in write_board(board, folder)):
        say(path)
    return 0


def _literature(request: LeaderboardRequest) -> int:
    """Write every published number; records, if there are any, may show a last layer not to be the best."""
    from layerboard.benchmark.plan.facts import known_depths
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.published.literature import all_published
    from layerboard.leaderboards.records.record import to_frame
    from layerboard.leaderboards.report.literature import literature_files
    from layerboard.zoo.atomic import write_whole

    ensure(not request.check, "--literature takes no --check: it writes numbers of others")
    records = records_of(request.output, empty=True) if request.output.is_dir() else to_frame([])
    folder = request.tables or request.output / "tables"
    for name, text in literature_files(all_published(), known_depths(), Board.of(records).scores).items():
        write_whole(folder / name, text)
        say(folder / name)
    return 0


def _check(records: "pd.DataFrame", tables: Path | None) -> int:
    """Compare records with pages in a folder; without one, those of suites of which the package has pages."""
    from layerboard.leaderboards.exchange.check import check_pages
    from layerboard.leaderboards.writers.build import tables_folder

    folder, apart = tables or tables_folder(), []
    if tables is None:
        apart = [suite for suite in records["suite"].unique() if not (folder / f"{suite}.csv").is_file()]
        records = records[~records["suite"].isin(apart)]
        ensure(not records.empty, f"the package has no pages of {some(apart)}; name yours: --tables DIR")
    differences = check_pages(records, folder)
    say("\n".join(differences or [f"The pages in {folder} are current."]))
    if apart:
        say(f"Not compared, since the package has no pages of them: {', '.join(apart)}.")
    return 1 if differences else 0


def _compare(records: "pd.DataFrame", baseline: Path, request: LeaderboardRequest) -> int:
    from layerboard.leaderboards.exchange.check import cut_files, moved_numbers, read_baseline, tidy_records
    from layerboard.leaderboards.records.key import TOLERANCE, Tolerance

    limit = TOLERANCE.score if request.tolerance is None else request.tolerance
    cut, unsealed = cut_files(baseline)
    if cut:
        say("\n".join(f"{sentence}; write the baseline again." for sentence in cut))
        return 1
    if unsealed:
        say(unsealed)
    before, today = read_baseline(baseline), tidy_records(records)
    count, moved = moved_numbers(before, today, request.backbones, Tolerance(score=limit))
    if not count:
        say(f"{baseline} has fewer numbers than expected: none; write the baseline again.")
        return 1
    if moved.empty:
        say(f"None of {count} numbers moved by more than {limit:g} points.")
        return 0
    further = f", of which {SHOWN} are shown" if len(moved) > SHOWN else ""
    say(f"{table_text(moved.head(SHOWN))}\n\n{len(moved)} of {count} numbers moved{further}.")
    return 1
