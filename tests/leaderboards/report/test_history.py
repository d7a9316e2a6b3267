"""The site of three submissions: pages of backbones, badges, the feed, and what the Hub reads of it."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from datasets import load_dataset
from huggingface_hub import DatasetCard, ModelCard, SpaceCard

import layerboard
from tests.leaderboards.exchange.test_repository import submit

CHROMIUM = shutil.which("chromium")
ATOM = "{http://www.w3.org/2005/Atom}"
MINE = "source,backbone,task,dataset,metric,value,input_size\nour paper,a,knn,mini-imagenet,top-1,62.4,64\n"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history") / "repository"
    submit(folder, "first", 3, {"a": [50.0, 60.0], "b": [40.0, 30.0]})
    submit(folder, "second", 5, {"c": [70.0, 71.0]}, claim="authors")
    submit(folder, "third", 9, {"a": [50.0, 62.5]}, replaces="first")
    return folder


@pytest.fixture(scope="module")
def site(repository: Path) -> Path:
    numbers = repository.parent / "numbers.csv"
    numbers.write_text(MINE)
    layerboard.report(output=repository, site=repository.parent / "site", published=[numbers])
    return repository.parent / "site"


def rows_of(page: str, name: str) -> list[list[str]]:
    """The texts of the cells of a table, by its name for screen readers."""
    (table,) = re.findall(rf'aria-label="{name}">\n?<table.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    rows = re.findall(r"<tr.*?</tr>", table, re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]
    return [[" ".join(re.sub("<[^>]+>", " ", cell).split()) for cell in row] for row in cells]


def test_a_backbone_has_all_its_submissions_and_its_scores_over_time(site: Path) -> None:
    page = (site / "backbones" / "a.html").read_text(encoding="utf-8")
    assert rows_of(page, "Best layers, mini")[0][:4] == ["knn top-1", "62.5", "2/2 cls", "2 of 2"]
    weights = "0123456789abcdef"
    assert rows_of(page, "Its submissions") == [
        ["3", "third", "2026-01-09", "by others", weights],
        ["1", "first replaced by third", "2026-01-03", "by others", weights],
    ]
    assert [(row[1], row[3], row[4], row[5]) for row in rows_of(page, "Over time")] == [
        ("third", "60.0 (2 cls)", "62.5 (2 cls)", "moved"),
        ("first replaced by third", "", "60.0 (2 cls)", "new"),
    ]
    assert page.count("<svg") == 2  # the chart of what moved, and the badge
    (other,) = rows_of(page, "Numbers of others")
    assert other[1:4] == ["our paper", "62.4", "62.50 (2)"]
    board = (site / "index.html").read_text(encoding="utf-8")
    assert [row[:3] for row in rows_of(board, "Numbers of others, mini")] == [["a", *other[:2]]]
    still = (site / "backbones" / "c.html").read_text(encoding="utf-8")
    assert still.count("<svg") == 1  # nothing of it has moved
    assert not (site / "backbones" / "b.html").exists()  # which was replaced by nothing


def test_the_feed_is_atom_and_keeps_its_ids(
    repository: Path, site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ids(folder: Path) -> list[str | None]:
        return [each.text for each in ET.parse(folder / "feed.xml").getroot().iter(f"{ATOM}id")]

    feed = ET.parse(site / "feed.xml").getroot()
    entries = feed.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}title") for entry in entries] == ["third", "second", "first"]
    assert feed.findtext(f"{ATOM}updated") == "2026-01-09T12:00:00+00:00"
    assert feed.findtext(f"{ATOM}author/{ATOM}name")
    for entry in (feed, *entries):
        assert all(entry.findtext(f"{ATOM}{name}") for name in ("id", "title", "updated"))
        for link in entry.findall(f"{ATOM}link"):
            assert (site / link.attrib["href"]).is_file()
    assert "1 moved, 1 gone. It replaces first." in (entries[0].findtext(f"{ATOM}summary") or "")
    before = ids(site)
    assert len({*before}) == 4
    more = shutil.copytree(repository, tmp_path / "repository")
    submit(more, "fourth", 11, {"d": [1.0, 2.0]})
    monkeypatch.setattr("layerboard.leaderboards.report.page.report_page", lambda *_: "")  # the feed is read
    layerboard.report(output=more, site=tmp_path / "site")
    assert [each for each in ids(tmp_path / "site") if each in before] == before  # no reader sees them again


def test_badges_and_cards_are_read_by_who_shows_them(site: Path, tmp_path: Path) -> None:
    badge = ET.parse(site / "backbones" / "a.svg").getroot()
    assert badge.attrib["aria-label"] == "layerboard: 1 task measured"  # no intervals: nothing is compared
    assert ET.parse(site / "badge.svg").getroot().attrib["aria-label"].endswith("3 submissions, 2 backbones")
    (result,) = ModelCard(f"---\n{(site / 'backbones' / 'a.yaml').read_text()}---\n").data.eval_results
    assert (result.metric_value, result.metric_args["layer"]) == (62.5, 2)
    text = (site / "README.md").read_text(encoding="utf-8")
    assert (SpaceCard(text).data.sdk, SpaceCard(text).data.app_file) == ("static", "index.html")
    names = [config["config_name"] for config in DatasetCard(text).data.configs]
    assert names == ["mini", "literature"]
    table = load_dataset(str(site), "mini", split="train", cache_dir=str(tmp_path))
    assert {*zip(table["backbone"], table["layer"], table["value"], strict=True)} == {
        ("a", 1, 50.0), ("a", 2, 62.5), ("c", 1, 70.0), ("c", 2, 71.0),
    }  # fmt: skip


@pytest.mark.browser
def test_the_board_is_sorted_searched_and_filtered_by_keyboard(site: Path) -> None:
    if CHROMIUM is None:
        pytest.skip("no Chromium on the path")
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 390, "height": 800})
        said: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        for path in sorted(site.rglob("*.html")):
            tab.goto(path.as_uri())
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        tab.goto((site / "index.html").as_uri())

        def names() -> list[str]:
            script = (
                "rows => rows.filter(row => !row.hidden).map(row => row.cells[0].innerText.split(' ')[0])"
            )
            found: list[str] = tab.eval_on_selector_all("#board-1 tbody tr", script)
            return found

        assert names() == ["c", "a"]
        tab.focus("#board-1 th:has-text('backbone') button")
        tab.keyboard.press("Enter")
        assert names() == ["a", "c"]
        assert tab.get_attribute("#board-1 th:has-text('backbone')", "aria-sort") == "ascending"
        tab.keyboard.press("Space")
        assert names() == ["c", "a"]
        tab.focus("#claim-board-1")
        tab.keyboard.type("by others")
        assert names() == ["a"]
        assert "claim-board-1=by+others" in tab.evaluate("location.hash")
        tab.reload()
        assert names() == ["a"]
        tab.select_option("#claim-board-1", "")
        tab.fill("#find-board-1", "second")  # the submission that it came by
        assert names() == ["c"]
        tab.fill("#find-board-1", "nothing")
        assert tab.inner_text("output[for='find-board-1']") == "0 of 2 rows"
        browser.close()
    assert said == []
