"""HTML pages and figures of the results: the command `report` and `layerboard.report`."""

from dataclasses import replace
from typing import Literal

from layerboard.benchmark.commands.command import boards_of, public, records_of, require_run
from layerboard.benchmark.commands.result import PageFiles, page_files
from layerboard.benchmark.forms.option import Option, OptionalPath, Plain
from layerboard.benchmark.forms.request import ResultsOptions


class ReportRequest(ResultsOptions):
    """Options of `report`: the results to show, and in which form."""

    suite: Plain[str | None] = Option(None, "One of the folder's suites.", usual="all, one page per suite")
    to: OptionalPath = Option(None, "Folder to write to.", usual="OUTPUT/report")
    figures: Plain[Literal["svg", "pdf", "both"] | None] = Option(
        None, "Also write the charts as files.", usual="none"
    )
    highlight: Plain[str | None] = Option(
        None, "Backbone that stands out in charts and figures.", usual="none"
    )


@public("report", ReportRequest)
def report(request: ReportRequest) -> PageFiles:
    """Write an HTML page with charts, filters and tables.

    There is one page for each suite of an output folder, one file that works offline and on any web server.
    `--figures` also writes the charts as files for papers.

    Example: `layerboard report --figures pdf`

    Returns:
        ``paths`` are the written files, pages first; a notebook shows the first. ``frame`` lists them.

    Example:
        >>> import layerboard
        >>> [path.suffix for path in layerboard.report(output="results", to="pages").paths]
        ['.html']
    """
    from layerboard.benchmark.plan.facts import known_facts
    from layerboard.leaderboards.published.literature import all_published
    from layerboard.leaderboards.report.content import report_of
    from layerboard.leaderboards.report.figures import FORMATS, without_figure, write_figures
    from layerboard.leaderboards.report.gallery.section import example_sections
    from layerboard.leaderboards.report.page import report_page
    from layerboard.zoo.atomic import write_whole

    boards = boards_of(records_of(request.output), request.output, request.suite, all_published())
    if request.highlight is not None:
        labels = {name for board in boards for name in board.labels}
        require_run("backbone", [request.highlight], sorted(labels), request.output)
    reports = [report_of(board, known_facts(), request.highlight or "") for board in boards]
    folder = request.to or request.output / "report"
    paths, notes = [folder / f"{each.board.page}.html" for each in reports], list[str]()
    for path, board, each in zip(paths, boards, reports, strict=True):
        write_whole(path, report_page(each, example_sections(board, request.output)))
    if request.figures is not None:
        formats = FORMATS if request.figures == "both" else (request.figures,)
        paths += [path for each in reports for path in write_figures(each, folder, formats)]
        notes += [line for each in reports for line in without_figure(each)]
    written = page_files([*dict.fromkeys(paths)])
    return replace(written, notes=tuple(notes), lines=(*notes, *map(str, written.paths)))
