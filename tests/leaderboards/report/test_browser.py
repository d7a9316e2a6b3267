"""The page in a real browser, opened from a file, with the network watched."""

import csv
import io
import re
from contextlib import contextmanager
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

from layerboard.leaderboards.blocks.csv import csv_text
from layerboard.leaderboards.report.page import report_page
from tests.leaderboards.builder import frame, layers
from tests.leaderboards.report.boards import DAVIS, HOSTILE, KNN, content, small, usual, usual_page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "mini.html"
    path.write_text(usual_page(), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shared(browser, path, watch):
    """One tab for the tests that leave it as it was; what it asks for and what it says is kept."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    tab = context.new_page()
    asked, said = watch(tab)
    tab.goto(path.as_uri())
    tab.wait_for_selector("html[data-ready]")
    yield tab
    # at the end of all tests: nothing but the file was asked for, nothing was complained of
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []
    assert [url for url in asked if url.startswith("file:")] == [path.as_uri()]
    assert said == []


@contextmanager
def opened(browser, path, **options):
    """A tab of its own, once the page's script is done."""
    with browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options}) as context:
        tab = context.new_page()
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]")
        yield tab


def names(tab):
    """Backbones of the table that are shown, from top to bottom."""
    return tab.eval_on_selector_all(
        "#best-table tbody tr:not([hidden])", "rows => rows.map(row => row.dataset.backbone)"
    )


def show(tab, view):
    """Bring a chart into view and wait for it."""
    tab.locator(f"#view-{view}").scroll_into_view_if_needed()
    tab.wait_for_selector(f"#view-{view} :is(svg, canvas)")


def downloaded(tab, selector):
    """The rows of a CSV behind a link."""
    with tab.expect_download() as waiting:
        tab.click(selector)
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    return text, [*csv.DictReader(io.StringIO(text))]


def test_heads_sort_by_key_and_say_so(shared):
    head = shared.locator("#best-table thead th", has_text=KNN)
    head.get_by_role("button").focus()
    shared.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert names(shared) == ["mini-dino", "mini-clip", "mini-fs", HOSTILE]
    shared.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names(shared)[0] == HOSTILE
    shared.locator("#best-table thead th").first.get_by_role("button").click()
    assert names(shared)[1:] == ["mini-clip", "mini-dino", "mini-fs"]
    sorts = shared.locator("#best-table thead th[aria-sort=ascending]")
    assert sorts.count() == 1


def test_filters_hide_rows_and_say_how_many_are_left(shared):
    shared.select_option("[data-choice=licence]", "MIT")
    assert names(shared) == ["mini-clip"]
    assert shared.inner_text("#count") == "1 of 4 backbones"
    shared.select_option("[data-choice=licence]", "")
    shared.select_option("[data-choice=parameters]", label="up to 100 M")
    assert set(names(shared)) == {"mini-clip", "mini-fs"}
    shared.fill("[data-choice=find]", "FS")
    assert names(shared) == ["mini-fs"]
    shared.fill("[data-choice=find]", "nobody")
    assert shared.inner_text("#count") == "0 of 4 backbones"
    shared.click("text=Clear the filters")
    shared.wait_for_function("document.querySelector('#count').textContent === '4 of 4 backbones'")
    assert len(names(shared)) == 4


def test_a_point_tells_its_numbers(shared):
    show(shared, "tradeoff")
    points = shared.locator("#view-tradeoff svg path[role=graphics-symbol][aria-roledescription=point]")
    points.last.hover()
    shared.wait_for_selector("#tip:not([hidden])")
    words = shared.inner_text("#tip")
    assert "95 % interval" in words
    assert "layer" in words
    shared.mouse.move(2, 2)
    shared.wait_for_selector("#tip", state="hidden")


def test_pointer_and_arrow_keys_read_all_backbones_at_a_layer(shared):
    show(shared, "curves")
    shared.locator("#view-curves svg").hover(position={"x": 60, "y": 150})
    shared.wait_for_selector("#tip:not([hidden])")
    assert shared.inner_text("#tip b") == "layer 1"
    assert [*shared.locator("#tip dt").all_inner_texts()] == [
        " mini-fs",
        " mini-dino",
        " mini-clip",
        f" {HOSTILE}",
    ]
    shared.mouse.move(2, 2)
    shared.wait_for_selector("#tip", state="hidden")
    shared.focus("#view-curves .chart")
    shared.keyboard.press("ArrowLeft")
    assert shared.inner_text("#tip b") == "layer 3"
    shared.keyboard.press("ArrowLeft")
    assert "61.5 ± 1.0 ○" in shared.inner_text("#tip")
    shared.keyboard.press("Escape")
    shared.wait_for_selector("#tip", state="hidden")


def test_the_legend_highlights_and_hides(shared):
    show(shared, "curves")
    lines = "document.querySelectorAll('#view-curves svg [aria-roledescription=point]').length"
    everything = shared.evaluate(lines)
    first = shared.locator("#task-section .legend li", has_text="mini-fs")
    first.get_by_role("button", name="mini-fs", exact=True).press("Enter")
    assert "mark=mini-fs" in shared.url
    assert shared.locator("#best-table .marked").get_attribute("data-backbone") == "mini-fs"
    first.get_by_role("button", name="Hide mini-fs").press("Enter")
    shared.wait_for_function(f"{lines} === {everything - 3}")
    assert not first.is_visible()
    assert "backbones: 3 of 4" in shared.inner_text("#pick")
    shared.click("#pick")
    shared.check("#menu input[value=mini-fs]")
    shared.keyboard.press("Escape")
    assert not shared.locator("#menu").is_visible()
    shared.wait_for_function(f"{lines} === {everything}")
    first.get_by_role("button", name="mini-fs", exact=True).press("Enter")
    assert "mark" not in shared.url


def test_what_is_chosen_is_in_the_address_and_comes_back(browser, path):
    with opened(browser, path) as tab:
        assert tab.url == path.as_uri()
        tab.select_option("#task", DAVIS)
        tab.fill("[data-choice=find]", "mini")
        tab.click(f"#best-table thead button:text-is('{KNN}')")
        tab.select_option("[data-choice=theme]", "dark")
        tab.click("nav a[href='#cost-section']")
        tab.wait_for_function("location.hash.startsWith('#cost-section?')")
        address = tab.url
        again = tab.context.new_page()
        again.goto(address)
        again.wait_for_selector("html[data-ready]")
        assert again.input_value("#task") == DAVIS
        assert names(again) == ["mini-dino", "mini-clip", "mini-fs"]
        assert again.get_attribute("html", "data-theme") == "dark"
        for each in (tab, again):  # what fills the bar of colours is found in the page
            show(each, "depth_map")
            filled = "document.querySelector('#view-depth_map [fill^=url]').getAttribute('fill')"
            page, anchor = each.evaluate(filled).removeprefix("url(").removesuffix(")").split("#")
            assert (page, each.locator(f"#{anchor}").count()) == (path.as_uri(), 1)
        assert again.evaluate("scrollY") > 500


def test_axe_finds_nothing_serious(browser, path, serious):
    for width, scheme in ((1400, "light"), (390, "dark")):
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True}
        with opened(browser, path, **options) as tab:
            for view in ("curves", "panels", "ranking", "tradeoff", "task_map", "alike"):
                show(tab, view)
            tab.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            assert serious(tab) == []


def test_another_task_changes_the_charts(shared):
    show(shared, "ranking")
    before = shared.inner_html("#view-ranking svg")
    assert "61.5 ± 1.0, layer 2/3" in before
    shared.select_option("#task", DAVIS)
    shared.wait_for_function(
        "document.querySelector('#view-ranking svg')?.outerHTML.includes('30.8 ± 1.0, layer 2/3')"
    )
    assert DAVIS in shared.inner_text("#view-ranking figcaption")
    assert shared.input_value("#cost-section [data-choice=task]") == DAVIS
    shared.select_option("#task", KNN)
    shared.wait_for_function(
        "document.querySelector('#view-ranking svg')?.outerHTML.includes('61.5 ± 1.0, layer 2/3')"
    )


def test_the_csv_of_a_chart_holds_the_numbers_of_the_leaderboard(shared):
    show(shared, "curves")
    text, rows = downloaded(shared, "#view-curves button[data-csv]")
    assert text.startswith(
        "column,measure,backbone,pooling,layer,depth,value,ci_low,ci_high,loss,place,chosen\n"
    )
    table = csv.DictReader(io.StringIO(csv_text(usual().numbers[0].frame)))
    wanted = {
        (row["backbone"], row["layer"]): tuple(float(row[name]) for name in ("value", "ci_low", "ci_high"))
        for row in table
        if row["task"] == "knn" and row["tap"] == "block" and row["family"] != "random"
    }
    got = {
        (row["backbone"], row["layer"]): tuple(float(row[name]) for name in ("value", "ci_low", "ci_high"))
        for row in rows
    }
    assert len(got) == 12
    assert got.keys() == wanted.keys()
    assert all(got[key] == pytest.approx(wanted[key], abs=1e-9) for key in wanted)


def test_the_csv_of_the_table_says_what_its_cells_say(shared):
    _, rows = downloaded(shared, "#best button[data-csv]")
    cells = dict(
        shared.eval_on_selector_all(
            "#best-table tbody tr",
            "rows => rows.map(row => [row.dataset.backbone, row.cells[2].textContent])",
        )
    )
    own = {row["backbone"]: row for row in rows if row["column"] == KNN}
    assert len(own) == 4
    for name, row in own.items():
        shown = re.match(r"([\d.]+) ± ([\d.]+).* \((\d+)/(\d+) (\w+)\)$", cells[name])
        assert shown[1] == f"{float(row['value']):.1f}"
        assert shown[2] == f"{(float(row['ci_high']) - float(row['ci_low'])) / 2:.1f}"
        assert shown.groups()[2:] == (row["layer"], row["depth"], row["pooling"])


def test_all_numbers_come_out_as_the_leaderboard_writes_them(shared):
    text, _ = downloaded(shared, "button[data-file] >> nth=0")
    assert text == csv_text(usual().numbers[0].frame)


def test_the_metric_of_the_curves_can_be_chosen(browser, tmp_path):
    others = [replace(one, metric="top-5", primary=False) for one in layers([70.0, 80.0])]
    davis = layers([10.0, 20.0], task="davis", metric="J&F", pooling="grid")
    page = tmp_path / "mini.html"
    page.write_text(report_page(content(frame(layers([50.0, 60.0]), others, davis))), encoding="utf-8")
    with opened(browser, page) as tab:
        show(tab, "curves")
        shown = "#measure option:not([hidden])"
        assert tab.locator(shown).all_text_contents() == ["top-1", "top-5"]
        tab.select_option("#measure", "knn top-1: top-5")
        tab.wait_for_function("document.querySelector('#view-curves svg')?.outerHTML.includes('top-5, %')")
        _, rows = downloaded(tab, "#view-curves button[data-csv]")
        assert [(row["measure"], row["value"]) for row in rows] == [
            ("knn top-1: top-5", "70"),
            ("knn top-1: top-5", "80"),
        ]
        show(tab, "ranking")
        assert "top-1, %" in tab.inner_html("#view-ranking svg")
        tab.select_option("#task", "davis J&F")
        assert tab.locator(shown).all_text_contents() == ["J&F"]
        assert tab.input_value("#measure") == "davis J&F"


def test_another_pooling_of_all_backbones_can_be_drawn(browser, tmp_path):
    mean = layers([40.0, 70.0], pooling="mean", primary=False)
    davis = layers([10.0, 20.0], task="davis", metric="J&F", pooling="grid")
    page = tmp_path / "mini.html"
    no_cls = layers([80.0], backbone="mini-clip", pooling="mean")
    page.write_text(report_page(content(frame(layers([50.0, 60.0]), mean, davis, no_cls))), encoding="utf-8")
    with opened(browser, page) as tab:
        show(tab, "ranking")
        assert "layer 2/2 mean" in tab.inner_html("#view-ranking svg")
        legend = tab.locator('.legend [data-backbone="mini-clip"]').first
        assert legend.get_attribute("hidden") is None
        tab.select_option("#vectors", "cls")
        tab.wait_for_function(
            "document.querySelector('#view-ranking svg')?.outerHTML.includes('layer 2/2 cls')"
        )
        assert legend.get_attribute("hidden") is not None
        assert "mini-clip" not in tab.inner_html("#view-ranking svg")
        tab.select_option("#task", "davis J&F")
        assert tab.input_value("#vectors") == ""


def test_the_first_screen_has_the_answer_and_its_chart(browser, path):
    for width, height in ((1400, 900), (1024, 768), (390, 844)):
        with opened(browser, path, viewport={"width": width, "height": height}) as tab:
            tab.wait_for_selector("#view-advice svg")
            sentence, chart = (tab.locator(each).bounding_box() for each in (".verdict", "#view-advice svg"))
            assert sentence["y"] + sentence["height"] < height
            assert chart["y"] + chart["height"] < height
            assert chart["x"] + chart["width"] <= width
            texts = [each.bounding_box() for each in tab.locator("#view-advice svg text").all()]
            boxes = [each for each in texts if each and each["width"]]
            assert not any(overlap(one, other) for one, other in combinations(boxes, 2))


def overlap(one, other):
    """Whether two texts overlap by more than two pixels."""
    sides = (("x", "width"), ("y", "height"))
    ends = [(max(one[at], other[at]), min(one[at] + one[w], other[at] + other[w])) for at, w in sides]
    return all(end - start > 2 for start, end in ends)


def test_similarity_is_drawn_for_the_two_that_are_chosen(shared):
    show(shared, "alike")
    assert (shared.input_value("#first"), shared.input_value("#second")) == ("mini-clip", "mini-dino")
    assert shared.locator("#alike-section details[open] figure svg").count() == 2
    _, rows = downloaded(shared, "#view-alike button[data-csv]")
    assert len(rows) == 9
    assert {"first": "mini-clip", "second": "mini-dino", "row": "1", "column": "3", "value": "0.69"} in rows
    shared.select_option("#first", "mini-dino")
    shared.select_option("#second", "mini-clip")
    shared.wait_for_function(
        "document.querySelector('#view-alike .what').textContent.includes('mini-dino and')"
    )
    _, rows = downloaded(shared, "#view-alike button[data-csv]")
    assert {"first": "mini-dino", "second": "mini-clip", "row": "3", "column": "1", "value": "0.69"} in rows
    shared.select_option("#second", "mini-dino")
    shared.wait_for_function("document.querySelector('#view-alike .empty') !== null")
    shared.select_option("#first", "mini-clip")


def test_the_numbers_of_a_chart_open_as_a_table(shared):
    show(shared, "task_map")
    shared.click("#view-task_map details.numbers summary")
    shared.wait_for_selector("#view-task_map .numbers td")
    assert shared.locator("#view-task_map .numbers tbody tr").count() == 6


def test_the_theme_can_be_changed(shared):
    ground = "getComputedStyle(document.body).backgroundColor"
    before = shared.evaluate(ground)
    shared.select_option("[data-choice=theme]", "dark")
    assert shared.get_attribute("html", "data-theme") == "dark"
    dark = shared.evaluate(ground)
    shared.select_option("[data-choice=theme]", "")
    assert (shared.evaluate(ground), dark) == (before, "rgb(16, 20, 24)")


def test_names_on_a_canvas_are_light_in_the_dark_theme(shared):
    """A canvas knows no current colour: its ink would be black on the dark ground."""
    light = """() => { const canvas = document.querySelector('#view-alike canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let at = 0; at < data.length; at += 4) {
        const ink = data[at] + data[at + 1] + data[at + 2];
        count += data[at + 3] > 200 && ink > 640 && ink < 730; // the theme's text, not the white line
      }
      return count; }"""
    shared.locator("#view-alike").scroll_into_view_if_needed()
    shared.wait_for_selector("#view-alike canvas")
    before = shared.evaluate(light)
    shared.select_option("[data-choice=theme]", "dark")
    shared.wait_for_timeout(600)
    dark = shared.evaluate(light)
    shared.select_option("[data-choice=theme]", "")
    assert dark > before + 20


def test_a_phone_needs_no_scrolling_aside(browser, path):
    with opened(browser, path, viewport={"width": 390, "height": 800}) as tab:
        for view in ("curves", "ranking", "tradeoff", "task_map", "alike"):
            show(tab, view)
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_every_chart_is_printed_and_the_table_is_whole(browser, path):
    with opened(browser, path, viewport={"width": 1280, "height": 600}) as tab:
        views = (
            "[...document.querySelectorAll('.view')].map(view => view.querySelectorAll('svg, canvas').length)"
        )
        tab.evaluate(f"addEventListener('afterprint', () => {{ window.printed = {views}; }})")
        tab.pdf(format="A4")
        assert set(tab.evaluate("window.printed")) == {1}
        tab.emulate_media(media="print")
        tab.set_viewport_size({"width": 720, "height": 1000})
        assert tab.evaluate("document.querySelector('#best-table').getBoundingClientRect().right") <= 720


def test_without_scripts_tables_are_shown_and_what_needs_them_is_not(browser, path):
    with browser.new_context(java_script_enabled=False) as context:
        tab = context.new_page()
        tab.goto(path.as_uri())
        assert tab.locator("#best-table tbody tr").count() == 4
        assert tab.locator("#best-table").is_visible()
        assert not tab.locator("#filters").is_visible()
        assert tab.locator("noscript p").first.is_visible()
        tab.locator("#tables details", has_text="knn on mini-imagenet").locator("summary").click()
        assert tab.locator("#tables details[open] table").first.is_visible()


def test_a_chart_is_named_by_its_title_and_choice(shared):
    show(shared, "curves")
    shared.wait_for_selector(f"#view-curves .chart[aria-label='Layer by layer: {KNN}']")


def test_backbones_that_are_all_hidden_stay_so(browser, path):
    with opened(browser, path) as tab:
        tab.click("#pick")
        tab.click("#menu [data-pick=none]")
        button, menu = tab.locator("#pick").bounding_box(), tab.locator("#menu").bounding_box()
        assert menu["x"] == pytest.approx(button["x"], abs=2)
        assert button["y"] + button["height"] <= menu["y"] < button["y"] + 60
        tab.reload()
        tab.wait_for_selector("html[data-ready]")
        assert tab.inner_text("#pick") == "backbones: 0 of 4"


def test_without_scores_similarity_of_all_backbones_is_drawn(browser, tmp_path):
    page = tmp_path / "mini.html"
    page.write_text(report_page(content(small()[lambda rows: rows["task"] == "cka"])), encoding="utf-8")
    with opened(browser, page) as tab:
        show(tab, "alike")
        assert tab.locator("#view-alike .empty").count() == 0
        assert tab.locator("#alike-section details[open] figure svg").count() == 2
