"""The report of an output folder: pages, figures, a site."""

from dataclasses import replace
from pathlib import Path

from benchmark.exchange.comparison import records_of
from benchmark.plan.facts import known_facts, with_seen
from benchmark.request.pages import ReportRequest
from leaderboards.display import page_name
from leaderboards.literature import all_published, read_published
from leaderboards.records.record import of_suite, suites_of
from leaderboards.report.content import Sources, content_of
from leaderboards.report.examples import example_sections
from leaderboards.report.figures import FORMATS, write_figures
from leaderboards.report.page import report_page
from leaderboards.report.site import write_site
from zoo.atomic import whole_file
from zoo.errors import InputError, unknown


def written(request: ReportRequest) -> list[Path]:
    """Write what was asked for: a page for each suite, and figures and a site where they are named.

    Returns:
        The files, pages first.

    Raises:
        InputError: There are no records, no such suite, or a file of published numbers cannot be read.
    """
    own = [one for path in request.published for one in read_published(path, own=True)]
    records = with_seen(records_of(request.output))
    suites = suites_of(records)
    if request.suite is not None and request.suite not in suites:
        raise unknown("suite", request.suite, suites)
    if request.site is not None and request.site.is_file():
        raise InputError(f"--site takes a folder; found the file {request.site}")
    output = request.output
    sources = Sources(output / "items", output / "arrays", known_facts(), published=(*all_published(), *own))
    chosen = suites if request.suite is None else [request.suite]
    shown = {
        suite: replace(sources, sections=example_sections(of_suite(records, suite), output))
        for suite in chosen
    }
    contents = [content_of(records, suite, shown[suite]) for suite in chosen]
    folder = request.to or output / "report"
    pages = {content.suite: report_page(content, shown[content.suite]) for content in contents}
    paths = []
    for suite, page in pages.items():
        path = folder / f"{page_name(suite)}.html"
        with whole_file(path) as temporary:
            temporary.write_text(page, encoding="utf-8", newline="\n")
        paths.append(path)
    if request.figures is not None:
        formats = FORMATS if request.figures == "both" else (request.figures,)
        paths += [path for content in contents for path in write_figures(content, folder, formats)]
    if request.site is not None:
        paths += write_site(pages, contents, request.site)
    return paths
