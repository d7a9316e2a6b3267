"""HTML pages and figures of the results: the command `report` and `layerboard.report`."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

from layerboard.benchmark.commands.command import boards_of, command, records_of, say
from layerboard.benchmark.commands.result import PageFiles, page_files
from layerboard.benchmark.forms.option import Form, OnePath, Option, OptionalPath, Plain, of_form
from layerboard.zoo.errors import InputError, first_line, require_known

if TYPE_CHECKING:
    from layerboard.leaderboards.board.board import Board
    from layerboard.leaderboards.exchange.repository import Repository
    from layerboard.leaderboards.exchange.submission import Submission


class ReportRequest(Form):
    """Options of `report`: the results to show, and in which form."""

    output: OnePath = Option("results", "Output folder of a run, or a results repository.", also="-o")
    suite: Plain[str | None] = Option(None, "One of the folder's suites.", usual="all, one page per suite")
    to: OptionalPath = Option(None, "Folder to write to.", usual="OUTPUT/report")
    figures: Plain[Literal["svg", "pdf", "both"] | None] = Option(
        None, "Also write the charts as files.", usual="none"
    )
    highlight: Plain[str | None] = Option(
        None, "Backbone that stands out in charts and figures.", usual="none"
    )
    site: OptionalPath = Option(None, "Also write a folder for a static host or Hugging Face Space.")
    since: Plain[str | None] = Option(
        None, "For a repository: day or submission since which changes are listed.", usual="the last but one"
    )


@command("report", ReportRequest)
def report_command(request: ReportRequest) -> None:
    """Write an HTML page with charts, filters and tables.

    There is one page for each suite of an output folder, one file that works offline. `--figures` also writes
    the charts as files for papers, `--site` a folder for a static web host. For a results repository, the
    site has the leaderboards over all submissions, the changes since an earlier one, a page for each
    submission and each backbone, badges and a feed.

    Example: `layerboard report --figures pdf`
    """
    written = of_form(report)(request)
    for line in (*written.notes, *written.paths):
        say(line)


@report_command.python
def report(request: ReportRequest) -> PageFiles:
    """``paths`` are the written files, pages first; a notebook shows the first. ``frame`` lists them.

    Example:
        >>> import layerboard
        >>> [path.suffix for path in layerboard.report(output="results", to="pages").paths]
        ['.html']
    """
    from layerboard.benchmark.plan.facts import known_names
    from layerboard.leaderboards.exchange.repository import Repository
    from layerboard.leaderboards.records.manifest import SUBMISSIONS

    if not (request.output / SUBMISSIONS).is_dir():
        if request.since is not None:
            raise InputError(f"--since needs a results repository; {request.output} has no submissions")
        return _report(request, request.output)
    if request.site is None:
        raise InputError(f"{request.output} is a results repository; give the folder of its site by --site")
    return _site_of_all(request, Repository.read(request.output, request.since, known_names()))


def _site_of_all(request: ReportRequest, repository: "Repository") -> PageFiles:
    """The site of a repository, without any submission of which no page can be made."""
    try:
        return _site(request, repository)
    except OSError:
        raise
    except Exception as error:  # any error: single fields of others were checked, not what is made of them
        if (culprit := _culprit(repository)) is None:
            raise
        reason = f"no page can be made of it ({first_line(error)})"
    return _site_of_all(request, repository.without(culprit, reason))


def _culprit(repository: "Repository") -> "Submission | None":
    """The first submission with which no site can be written; None if one can be."""
    for count, submission in enumerate(repository.submissions, start=1):
        first = replace(repository, submissions=repository.submissions[:count], start=0)
        with TemporaryDirectory() as folder:
            try:
                _site(ReportRequest(site=Path(folder)), first)
            except OSError:
                raise
            except Exception:  # as above
                return submission
    return None


def _site(request: ReportRequest, repository: "Repository") -> PageFiles:
    """The site of a repository, written from its files alone."""
    from layerboard.leaderboards.exchange.merge import write_results

    with TemporaryDirectory() as folder:
        write_results(repository.results(len(repository.submissions)).values(), Path(folder))
        return _report(replace(request, to=request.to or request.site), Path(folder), repository)


def _require_fitting(request: ReportRequest, boards: "Sequence[Board]") -> None:
    """Raise InputError for a site that is a file, or a backbone to highlight that no board has."""
    if request.site is not None and request.site.is_file():
        raise InputError(f"--site takes a folder; found the file {request.site}")
    if request.highlight is not None:
        labels = {name for board in boards for name in board.labels}
        require_known("backbone", [request.highlight], sorted(labels))


def _report(request: ReportRequest, output: Path, repository: "Repository | None" = None) -> PageFiles:
    """Write the report of an output folder, and the site if it was merged from a results repository."""
    import pandas as pd

    from layerboard.benchmark.plan.facts import known_depths, known_facts
    from layerboard.leaderboards.published.literature import all_published
    from layerboard.leaderboards.report.content import report_of
    from layerboard.leaderboards.report.figures import FORMATS, without_figure, write_figures
    from layerboard.leaderboards.report.gallery.section import example_sections
    from layerboard.leaderboards.report.history import History
    from layerboard.leaderboards.report.literature import literature_files
    from layerboard.leaderboards.report.page import report_page
    from layerboard.leaderboards.report.site import write_site
    from layerboard.zoo.atomic import write_whole

    records = records_of(output)
    records = repository.marked(records) if repository else records
    boards = boards_of(records, output, request.suite, all_published())
    _require_fitting(request, boards)
    reports = [report_of(board, known_facts(), request.highlight or "") for board in boards]
    folder = request.to or output / "report"
    pages = {
        board.suite: report_page(each, example_sections(board, output))
        for board, each in zip(boards, reports, strict=True)
    }
    paths, notes = [folder / f"{each.board.page}.html" for each in reports], list[str]()
    for path, page in zip(paths, pages.values(), strict=True):
        write_whole(path, page)
    if request.figures is not None:
        formats = FORMATS if request.figures == "both" else (request.figures,)
        paths += [path for each in reports for path in write_figures(each, folder, formats)]
        notes += [line for each in reports for line in without_figure(each)]
    if request.site is not None:
        history = History(repository, reports, request.since or "").pages() if repository else {}
        others = literature_files(
            all_published(), known_depths(), pd.concat([board.scores for board in boards])
        )
        paths += write_site(pages, reports, request.site, history, others)
    written = page_files([*dict.fromkeys(paths)])
    notes += [f"left out: {reason}" for reason in (repository.left_out if repository else ())]
    return replace(written, notes=tuple(notes))
