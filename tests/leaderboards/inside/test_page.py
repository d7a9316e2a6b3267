from dataclasses import replace

import pandas as pd

from layerboard.leaderboards.blocks import display
from layerboard.leaderboards.blocks.blocks import Plot, Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import RecordGroup, groups_of, is_analysis
from layerboard.leaderboards.board.tidy import INSIDE, inside_frame, tidy_frame
from layerboard.leaderboards.exchange.check import check_pages
from layerboard.leaderboards.inside.page import inside_page, layers_table, ranges_table
from layerboard.leaderboards.records.key import Tolerance
from layerboard.leaderboards.sections.provenance import empty_cells
from layerboard.leaderboards.writers.build import pages_of
from layerboard.leaderboards.writers.markdown import markdown_page
from tests.leaderboards.analyses import DISTANCE, NO_ATTENTION, PIXELS, TASK, distances, without_attention
from tests.leaderboards.builder import NAN, floor, frame, layers, record, unsure
from tests.leaderboards.reader import page_html
from tests.leaderboards.shown import gaps_of, render_page, write_pages

CLIP = {"backbone": "mini-clip", "family": "CLIP"}
DINO_HEADS = [[0.1, 0.3], [0.5, 0.5]]
CLIP_HEADS = [[0.4, 0.6], [0.2, 0.2], [0.3, 0.1]]
NAME = f"mini.inside.csv: mini-dino, {TASK} on mini-imagenet (standard): "


def inside(**changes):
    return [*distances(DINO_HEADS, **changes), *distances(CLIP_HEADS, **CLIP), *without_attention()]


def ranked():
    scores = [*unsure(layers([10.0, 30.0]), chosen={2: 1.0}), *layers([20.0, 29.0], **CLIP)]
    return [*scores, *floor([1.0])]


def both():
    return frame(ranked(), inside())


def main(records):
    rows = records[(records["metric"] == TASK) & (records["head"] == -1)]
    return rows[rows["value"].notna()]


def test_an_analysis_is_nowhere_on_the_leaderboard(tmp_path):
    records, without = both(), frame(ranked())
    assert [column.task for column in Board.of(records).columns] == ["knn"]
    assert set(Board.of(records).scores["task"]) == {"knn"}
    found, expected = (Board.of(each, items=tmp_path).bounds for each in (records, without))
    assert found.keys() == expected.keys()
    for key, bounds in found.items():
        pd.testing.assert_frame_equal(bounds.rows.reset_index(drop=True), expected[key].rows)
    assert Board.of(records).columns[0].held_out == Board.of(without).columns[0].held_out
    assert tidy_frame(Board.of(records, "mini")).equals(tidy_frame(Board.of(without, "mini")))
    assert empty_cells(Board.of(records)) == empty_cells(Board.of(without))
    page = render_page(records, "mini")
    sentence = (
        "Analyses of attention, residuals and receptive fields are on a page of their own: `mini.inside`.\n\n"
    )
    assert page.replace(sentence, "") == render_page(without, "mini")


def test_what_the_registry_calls_an_analysis_is_one(monkeypatch):
    entries = tuple(replace(one, analysis=one.name == "knn") for one in display.TASKS)
    monkeypatch.setattr(display, "TASKS", entries)
    records = frame(layers([1.0]), layers([1.0], task="zebra"), layers([1.0], task="own", analysis=True))
    assert is_analysis(records).tolist() == [True, False, True]


def test_a_single_head_is_no_score_of_a_layer():
    records = frame(layers([1.0, 2.0]), [record(value=99.0, head=0, depth=2)])
    assert Board.of(records).scores["value"].tolist() == [1.0, 2.0]


def test_analyses_are_in_order_and_name_their_primary_metric_first():
    other = [record(**DISTANCE | {"protocol": "paper", "metric": "z"})]
    metric = [record(**DISTANCE | {"metric": "a", "primary": False})]
    found = groups_of(frame(other, metric, distances(DINO_HEADS)))
    metrics = (TASK, "a", f"{TASK}-px", f"{TASK}-ratio")
    assert [(one.protocol, set(one.metrics), one.metrics[0]) for one in found] == [
        ("standard", set(metrics), TASK),
        ("paper", {"z"}, "z"),
    ]
    (lacking,) = groups_of(frame(without_attention()))
    assert (lacking, lacking.metrics) == (RecordGroup(TASK, "mini-imagenet", "standard"), (TASK,))


def test_views_are_what_has_numbers():
    cls = distances(DINO_HEADS, pooling="cls")
    own = [record(**DISTANCE | {"tap": "mlp", "value": NAN, "reason": "none"})]
    page = inside_page(Board.of(frame(distances(DINO_HEADS), cls, own), "mini"))
    captions = [block.caption for block in page.blocks if isinstance(block, Table) and block.folded]
    assert [caption for caption in captions if "of every layer" in caption] == [
        f"{TASK} of every layer: {tokens}, attention, n = 400 images"
        for tokens in ("class token", "patch tokens")
    ]


def test_the_page_begins_with_questions_and_their_answers():
    text = markdown_page(inside_page(Board.of(both(), "mini")))
    title, anchor = "Attention distance on mini-imagenet (standard)", "mini-imagenet-standard"
    asked = f"- [{title}](#attention-distance-on-{anchor}): Are attention heads local or global? Attention "
    asked += "distance as a share of uniform attention's, the most local block: 0.339 (all).\n"
    assert asked in text
    assert "|   0.339 (2) |   0.339 (1) |" in text
    assert text.index("## At a glance") < text.index(f"## {title}")
    assert "- [Empty cells](#empty-cells)\n" in text


def test_a_plot_of_zeros_is_a_sentence():
    records = frame(distances([[0.0, 0.0], [0.0, 0.0]]))
    page = inside_page(Board.of(records.assign(value=0.0), "mini"))
    assert not [block for block in page.blocks if isinstance(block, Plot)]
    assert "Every head: 0 in every block of every backbone." in markdown_page(page)
    missing = markdown_page(inside_page(Board.of(records.assign(value=NAN), "mini")))
    assert "0 in every block" not in missing


def test_an_analysis_without_a_question_is_a_link_alone():
    records = both().replace({"task": {TASK: "own"}, "metric": {TASK: "own"}})
    text = markdown_page(inside_page(Board.of(records, "mini")))
    assert "- [Own on mini-imagenet (standard)](#own-on-mini-imagenet-standard)\n" in text


def test_the_table_of_layers_is_the_mean_over_heads_with_its_interval():
    rows = main(frame(inside()))
    table = layers_table(rows, Board.of(rows).labels)
    assert table.columns.tolist() == ["backbone", "1", "2", "3"]
    assert table.to_numpy().tolist() == [
        ["mini-clip", "0.500 ± 0.012", "0.200 ± 0.012", "0.200 ± 0.012"],
        ["mini-dino", "0.200 ± 0.012", "0.500 ± 0.012", ""],
    ]


def test_the_other_metrics_are_ranges_over_layers():
    rows = frame(inside())
    rows = rows[rows["head"] == -1]
    table = ranges_table(rows[rows["value"].notna()], Board.of(rows).labels, (f"{TASK}-px", f"{TASK}-ratio"))
    assert table.to_numpy().tolist() == [
        ["mini-clip", "11.2 (2) to 28.0 (1)", "0.339 (2) to 0.847 (1)"],
        ["mini-dino", "11.2 (1) to 28.0 (2)", "0.339 (1) to 0.847 (2)"],
    ]


def test_the_page_says_what_it_is_and_names_what_is_missing_once():
    text = markdown_page(inside_page(Board.of(both(), "mini")))
    assert text.startswith("# Inside the backbones: mini\n\nAnalyses of each layer")
    assert "**describe and do not rank**" in text
    assert "## Attention distance on mini-imagenet (standard)" in text
    assert f"<summary>{TASK} of every layer: patch tokens, attention, n = 400 images</summary>" in text
    assert text.count(NO_ATTENTION) == 1
    assert text.endswith(f"- mini-resnet: {TASK} on mini-imagenet (standard): {NO_ATTENTION}.\n")
    assert text.count("| mini-resnet ") == 1  # among the weights that were run
    assert "knn" not in text
    assert "%" not in text.replace("95 %", "")
    assert "nan" not in text.lower()


def test_an_analysis_that_nothing_draws_has_lines_and_points():
    records = both().replace({"task": {TASK: "own"}, "metric": {TASK: "own"}})
    page = inside_page(Board.of(records, "mini"))
    lines, heads = [block for block in page.blocks if isinstance(block, Plot)]
    assert lines.kind == "lines"
    assert lines.frame["series"].unique().tolist() == ["mini-clip", "mini-dino"]
    assert lines.x == "block / depth"
    assert (heads.kind, heads.shared) == ("points", True)
    assert heads.frame[heads.frame["panel"] == "mini-dino"].iloc[:, 1:].to_numpy().tolist() == [
        *(["one head", 1, 0.1], ["one head", 1, 0.3], ["one head", 2, 0.5], ["one head", 2, 0.5]),
        *(["mean over heads", 1, 0.2], ["mean over heads", 2, 0.5]),
    ]
    assert page_html(page).count("<svg") == 2


def test_an_analysis_of_nothing_says_so():
    text = markdown_page(inside_page(Board.of(frame(without_attention()), "mini")))
    assert "Nothing could be measured; the last section says why." in text


def test_missing_layers_are_named_and_backbones_that_were_not_run():
    gap = [record(**DISTANCE | PIXELS | {"value": NAN, "reason": "no grid", "layer": 2, "depth": 2})]
    other = distances(CLIP_HEADS, **CLIP, dataset="other")
    assert gaps_of(frame(distances([[0.1]]), gap, other, ranked())) == [
        f"mini-clip: {TASK} on mini-imagenet (standard): not run.",
        f"mini-dino: {TASK} on mini-imagenet (standard), layer attention of 2: no grid.",
        f"mini-dino: {TASK} on other (standard): not run.",
    ]


def test_a_number_of_no_single_block_is_named_as_one_of_all():
    never = record(**DISTANCE | {"value": NAN, "reason": "never", "layer": -1, "tap": "mlp"})
    found = gaps_of(frame(distances([[0.1]]), [never]))
    assert f"mini-dino: {TASK} on mini-imagenet (standard), layer mlp of all blocks: never." in found


def test_an_analysis_that_failed_as_a_whole_is_named():
    whole = record(
        **DISTANCE
        | {"metric": "", "value": NAN, "reason": "out of memory", "layer": -1, "tap": "block", "n": 0}
    )
    assert gaps_of(frame([whole])) == [f"mini-dino: {TASK} on mini-imagenet (standard): out of memory."]
    assert "out of memory" in markdown_page(inside_page(Board.of(frame([whole]), "mini")))


def test_the_csv_has_one_row_a_number_with_its_head():
    rows = inside_frame(Board.of(both(), "mini").analyses)
    assert rows.columns.tolist() == INSIDE
    assert len(rows) == 3 * 3 * (2 + 3) + 2
    first = f"mini-clip,CLIP,True,{TASK},mini-imagenet,standard,patch,{TASK},1,attention,"
    lines = rows.to_csv(index=False).splitlines()
    assert lines[1:4] == [
        first + "-1,,0.500000,0.488000,0.512000,400,False,,",
        first + "0,,0.400000,,,400,False,,",
        first + "1,,0.600000,,,400,False,,",
    ]
    gap = f"mini-resnet,ResNet,True,{TASK},mini-imagenet,standard,patch,{TASK},2,attention,-1,,,,,0,False,,"
    assert gap + NO_ATTENTION in lines


def test_the_page_does_not_depend_on_the_order_of_the_records():
    records = both()
    shuffled = records.sample(frac=1, random_state=5)
    assert inside_page(Board.of(shuffled, "mini")).name == "mini.inside"
    assert page_html(inside_page(Board.of(shuffled, "mini"))) == page_html(
        inside_page(Board.of(records, "mini"))
    )


def test_the_check_compares_analyses_too(tmp_path):
    names = ["mini.csv", "mini.inside.csv", "mini.inside.md", "mini.md"]
    assert [path.name for path in write_pages(both(), tmp_path)] == names
    assert [page.name for page in pages_of(Board.of(frame(inside()), "mini"))] == ["mini.inside"]
    assert check_pages(both(), tmp_path) == []
    moved = frame(ranked(), inside(), distances([[0.1, 0.31], [0.5, 0.5]], date="2027"))
    changed = check_pages(moved, tmp_path)
    assert changed == [
        NAME + "6 rows moved by more than 2 %, most layer 1 attention head 1, patch: committed 0.3, now 0.31"
    ]
    assert check_pages(moved, tmp_path, Tolerance(analysis=0.05)) == []
    assert check_pages(frame(ranked()), tmp_path) == []  # analyses are not run where no task is named


def test_numbers_of_two_layers_or_backbones_stand_apart():
    facts = {**DISTANCE, "task": "locality", "metric": "locality-rho", "tap": "heads", "depth": 1}
    rho = record(**facts, value=-0.5, other="mini-resnet")
    block = record(**facts, value=-0.1, other="mini-resnet", other_layer=1, other_tap="block")
    within = record(**facts, value=0.3, other="mini-dino", other_layer=2, other_tap="mlp")
    text = markdown_page(inside_page(Board.of(frame([rho, block, within]), "mini")))
    assert "-0.500" in text
    assert "-0.100" not in text
    assert "0.300" not in text
    assert "mini-resnet: locality" not in text  # it is what others are compared with, and was run
    numbers = inside_frame(Board.of(frame([rho, block, within]), "mini").analyses)
    assert numbers[["layer", "tap", "other", "value"]].to_numpy().tolist() == [
        ["1", "heads", "mini-resnet", "-0.500000"]
    ]
