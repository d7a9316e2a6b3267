import re

import pytest
from markupsafe import Markup

from layerboard.leaderboards.charts.engine import vega_script
from layerboard.leaderboards.report.page import report_page
from layerboard.leaderboards.report.templates.environment import ASSETS, PageSection
from tests.leaderboards.builder import floor, frame, layers, record
from tests.leaderboards.reader import Reader
from tests.leaderboards.report.boards import HOSTILE, content, cost, small


def page(records=None, examples=(), **more):
    return report_page(content(records, **more), examples)


def own(text):
    """The page without the charting library, which names addresses but reads none."""
    return text.replace(vega_script(), "")


@pytest.fixture(scope="module")
def text():
    return page(examples=[SECTION])


SECTION = PageSection("gallery", "failures <b>", "Failures <b>", Markup("<p>one</p>"))


def test_it_needs_nothing_outside_of_itself(text):
    found = Reader(own(text))
    assert [link for link in found.named("a") if not link["href"].startswith("#")] == []
    assert found.named("link") + found.named("img") + found.named("iframe") == []
    assert all("src" not in script for script in found.named("script"))
    assert not re.search(r"https?://(?!www\.w3\.org|vega\.github\.io/schema)", own(text))
    [policy] = [one["content"] for one in found.named("meta") if "http-equiv" in one]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("style-src")[0]


def test_names_from_data_are_shown_as_they_are_and_do_nothing(text):
    found = Reader(own(text))
    assert "<script>alert" not in text
    assert len(found.named("script")) == 3
    assert found.text.count(HOSTILE) > 5
    assert not any(name.startswith("on") for _, attributes in found.tags for name in attributes)


def test_every_section_has_its_heading_and_is_in_the_list(text):
    found = Reader(own(text))
    anchors = [one["id"] for one in found.named("section")]
    assert anchors == [
        "answer", "best", "task-section", "cost-section", "backbone-section", "alike-section", "gallery",
        "inside", "tables",
    ]  # fmt: skip
    assert [f"#{name}" for name in anchors] == [
        one["href"] for one in found.named("a") if one["href"][1:] in anchors and len(one) == 1
    ]
    names = [one["id"] for _, one in found.tags if "id" in one]
    assert len(set(names)) == len(names)


def test_raw_pixels_stand_below_the_random_floor_and_on_the_cards():
    pixels = layers([17.5], backbone="raw-pixels", family="pixels", trained=False)
    text = page(frame(layers([50.0]), pixels, floor([1.0, 2.0])))
    card = text[text.index('<li class="card">') : text.index("</ul></details></li>")]
    assert "raw pixels 17.5 %" in card
    foot = Reader(text[text.index("<tfoot>") : text.index("</tfoot>")]).text
    assert [line.strip() for line in foot.split("raw pixels")][-1].startswith("17.5")
    assert "the only backbone with a score here" in card


def test_every_score_is_in_a_table_that_needs_no_script(text):
    words = Reader(own(text)).text
    for score in ("30.0 ± 1.0", "61.5 ± 1.0", "62.2 ± 1.0", "31.1 ± 1.0", "10.0 ± 1.0"):
        assert score in words


@pytest.mark.parametrize(
    "records",
    [
        frame(floor([1.0, 2.0])),
        frame([cost("mini-clip", 1, "ms", 2.0)]),
        frame(layers([float("nan"), float("nan")], backbone="mini-fs")),
    ],
    ids=["floor", "analysis", "reasons"],
)
def test_a_suite_without_scores_still_has_a_page(records):
    found = Reader(own(page(records)))
    assert "This suite has no scores" in found.text
    assert found.named("section")[-1] == {"id": "tables", "aria-labelledby": "tables-title"}


def test_the_page_is_the_same_for_the_records_in_any_order(text):
    assert page(small().sample(frac=1, random_state=0), examples=[SECTION]) == text


BEYOND = {
    "What variants of a backbone change": [
        *layers([31.0, 52.0, 64.5], backbone="mini-fs@128px", input_size=128),
        *layers([3.0, 70.75, 1.0], backbone="mini-fs", transform="whiten"),
    ],
    "What sets of layers gain": [record(backbone="mini-fs", layer=3, tap="2+3", value=66.25)],
}


def test_sets_and_variants_have_a_section_where_they_were_run(text):
    plain = layers([30.0, 50.0, 60.0], backbone="mini-fs")
    for title, more in BEYOND.items():
        shown = page(frame(plain, more))
        section = shown[shown.index('<section id="beyond"') : shown.index('<section id="tables"')]
        assert section.count("<summary>") == 1
        assert f"<summary>{title}</summary>" in section
        assert f"{max(one.value for one in more):.1f}" in section
    assert 'id="beyond"' not in text


def test_a_row_of_a_set_is_named_by_the_set_whatever_was_done_to_its_layers():
    changed = {"backbone": "mini-fs", "transform": "whiten"}
    sets = [record(backbone="mini-fs", layer=3, tap="2+3"), record(**changed, layer=3, tap="2+3")]
    shown = page(frame(layers([30.0, 50.0], backbone="mini-fs"), layers([3.0, 70.75], **changed), sets))
    names = re.findall(r'<th scope="row" class="left">([^<]*)</th>', shown[shown.index("What sets") :])
    assert names[:2] == ["best pair of 1", "best pair of 1"]


def test_assets_are_part_of_the_package():
    names = {path.name for path in ASSETS.iterdir()}
    assert names == {"examples.css", "look.css", "look.js", "report.css", "report.js", "table.js"}
    packaged = (ASSETS.resolve().parents[2] / "pyproject.toml").read_text()
    assert "report/assets/*" in packaged
    assert "report/templates/*" in packaged
