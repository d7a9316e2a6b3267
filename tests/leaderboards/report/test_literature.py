"""The page of the literature: whole without its script, and sorted and searched by it in a real browser."""

import csv
import re
from html import unescape
from io import StringIO
from pathlib import Path

import pytest

from layerboard.leaderboards.findings.literature import literature
from layerboard.leaderboards.published.literature import SOURCES, all_published
from layerboard.leaderboards.report.literature import literature_files
from layerboard.zoo.registry.find import all_specs
from tests.leaderboards.builder import frame, layers

DEPTHS = {spec.name: spec.depth for spec in all_specs()}
MOST = 3_000_000  # bytes of the page


@pytest.fixture(scope="module")
def files():
    return literature_files(all_published(), DEPTHS)


def rows_of(page, name):
    """The texts of the cells of a table of the page, by its name for screen readers."""
    (table,) = re.findall(rf'aria-label="{name}">\n?<table.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[re.sub("<[^>]+>", " ", cell).split() for cell in row] for row in cells]


def test_every_published_number_is_on_the_page_and_in_the_csv(files):
    rows = rows_of(files["literature.html"], "Every published number")
    assert len(rows) == len(all_published())
    assert sorted((row[0][0], row[2][0]) for row in rows) == sorted(
        (one.backbone, f"{one.value:.{one.decimals}f}") for one in all_published()
    )
    lines = [*csv.DictReader(StringIO(files["literature.csv"]))]
    assert len(lines) == len(rows)
    assert {line["source"] for line in lines} == set(SOURCES)


def test_each_row_names_a_group_of_the_page(files):
    page = files["literature.html"]
    anchors = re.findall(r'<a href="#([\w-]+)">[\w-]+ \d+</a>', page)
    assert len(anchors) == len(all_published())
    assert all(page.count(f'<tr id="{anchor}">') == 1 for anchor in set(anchors))
    groups = rows_of(page, "Groups")
    assert len(groups) == literature(all_published(), DEPTHS)["group"].nunique() == len(set(anchors))
    told = {row[5][0].rstrip(":,") for row in groups}
    assert told == {"yes", "no"}


def test_what_was_run_comes_first_and_fine_tuned_numbers_have_no_rank():
    run = frame(layers([1.0], task="davis", dataset="davis-2017-val", metric="J&F"))
    page = literature_files(all_published(), DEPTHS, run)["literature.html"]
    tasks = [row[1][0] for row in rows_of(page, "Every published number")]
    assert tasks[: tasks.count("davis")] == ["davis"] * tasks.count("davis")
    assert "57 of networks that were fine-tuned on the task, which have no rank" in " ".join(page.split())


def test_it_is_one_small_file_that_asks_for_nothing(files):
    page = files["literature.html"]
    assert len(page.encode()) < MOST
    policy = r"default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'unsafe-inline'"
    assert re.search(policy, unescape(page))
    assert not re.search(r'(src|href)="(?!#)', page)


def test_the_committed_page_is_current(files):
    """``layerboard leaderboard --literature --tables docs -o none`` writes it again, beside its CSV."""
    whole = (Path(__file__).parents[3] / "docs" / "literature.html").read_text(encoding="utf-8")
    first, second = (re.sub(r'id="data">[^<]*<', "", page) for page in (whole, files["literature.html"]))
    assert first == second, test_the_committed_page_is_current.__doc__


@pytest.fixture(scope="module")
def tab(browser, files, tmp_path_factory, watch):
    path = tmp_path_factory.mktemp("literature") / "literature.html"
    path.write_text(files["literature.html"], encoding="utf-8")
    opened = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    _, said = watch(opened)
    opened.goto(f"{path.as_uri()}#find=DINO+B%2F16+keypoints")
    yield opened
    assert said == []


def shown(tab):
    script = "rows => rows.filter(row => !row.hidden).map(row => [...row.cells].map(cell => cell.innerText))"
    return tab.eval_on_selector_all("#numbers tbody tr", script)


@pytest.mark.browser
@pytest.mark.slow
def test_one_search_says_which_layer_of_dino_is_best_for_keypoints_and_who_says_so(tab):
    first = shown(tab)[0]
    assert first[0] == "dino-b16"
    assert (first[2], first[3]) == ("28.28", "9 of 12")
    assert first[-1].split("\n") == ["teaching-matters", "Table 5"]
    assert tab.inner_text("output").endswith(f"of {len(all_published())} rows")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.browser
@pytest.mark.slow
def test_all_words_of_a_search_must_be_there_and_the_address_keeps_them(tab):
    tab.fill("#find", "walmer  PE-core davis")
    assert shown(tab) == []
    tab.fill("#find", "PE-core davis")
    assert {row[0] for row in shown(tab)} == {"pe-core-g14"}
    assert "PE-core" in tab.evaluate("location.hash")
    tab.fill("#find", "")
    assert len(shown(tab)) == len(all_published())


@pytest.mark.browser
@pytest.mark.slow
def test_columns_are_sorted_and_what_has_no_rank_is_last(tab):
    tab.click("th:has-text('score') button")
    scores = [float(row[2].split()[0]) for row in shown(tab)]
    assert scores == sorted(scores, reverse=True)
    tab.click("th:has-text('rank') button")
    tab.click("th:has-text('rank') button")
    ranks = [row[5] for row in shown(tab)]
    known = [int(rank.split()[0]) for rank in ranks if rank[:1].isdigit()]
    assert known == sorted(known)
    assert not any(rank[:1].isdigit() for rank in ranks[len(known) :])
    assert "fine-tuned" in ranks[len(known) :]
