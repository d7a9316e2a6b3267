"""The published tables, checked against sums that were taken from the sources on their own."""

import csv
import re
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from layerboard.leaderboards.findings.literature import literature, printed_rank
from layerboard.leaderboards.published.literature import (
    COLUMNS,
    FOLDER,
    NEEDED,
    SOURCES,
    all_published,
    read_published,
)
from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.imagenet import ImageNetEntry
from layerboard.tasks.datasets.revisitop import ROXFORD5K, RPARIS6K
from layerboard.tasks.datasets.scenes import VOC_2012_AUG
from layerboard.tasks.datasets.spair import SpairEntry
from layerboard.tasks.datasets.vtab import VTAB
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from tests.leaderboards.findings.test_reproduce import README
from tests.shared import table_rows

COUNTS = {
    "teaching-matters": 1 + 20 + 20 * 12 + 24 + 12,
    "dino-readme": 5,
    "vit": 8 + 57,
    "dino": 3 * 4 + 4 * 3 + 1,
    "dinov2-readme": 8,
    "revisitop-readme": 6,
    "spair-others": 2,
    "aim-readme": 8,
    "capi-readme": 8,
    "dino-threads": 1,
    "dinov3-card": 24,
    "franca-readme": 20,
    "hummingbird-readme": 19,
    "insid3-readme": 4,
    "pe-readme": 5,
    "radio-report": 28,
    "tips-readme": 10,
    "pe-paper": 54,
    "dinov3-paper": 76,
    "omniprobe": 138 + 122,
}

ROWS = {
    "fs-s32": (447.56, 122),
    "fs-s16": (538.02, 121),
    "fs-b32": (460.71, 123),
    "fs-b16": (584.32, 120),
    "fs-b8": (629.96, 124),
    "fs-l16": (575.69, 229),
    "clip-b32": (461.62, 123),
    "clip-b16": (563.31, 121),
    "clip-l14": (588.30, 235),
    "dino-s16": (533.64, 132),
    "dino-s8-300ep": (572.26, 132),
    "dino-b16": (533.39, 130),
    "dino-b8": (597.81, 122),
    "moco-s16": (477.26, 131),
    "moco-b16": (490.88, 132),
    "mae-b16": (359.19, 132),
    "mae-l16": (414.97, 255),
    "mae-h14": (438.53, 314),
    "beit-b16": (322.63, 101),
    "beit-l16": (392.81, 200),
}
"""For each row of Table 5 of Teaching Matters the sums of its percents and of its best layers."""

NEWER = {
    (source, task): (float(total), int(number))
    for source, task, total, number in table_rows(Path(__file__).with_name("newer.csv"))
}
"""Of the sources of 2025 and 2026 the sum of each task's numbers, and how many can be compared with a run."""

MEASURED_BY_OTHERS = ("pe-paper", "dinov3-paper", "omniprobe")
"""Sources whose protocol is one of the package's, also of backbones that the registry lacks."""

NOT_ENTRIES = {"vit-b16-jft", "vit-h14-jft", "vit-l16-jft", "sup-s16", "sup-s8", "resnet101-gem"}
"""Backbones without weights to load."""

ENTRIES_TO_COME = {"moco-s16", "dino-s8-300ep", "dino-resnet50"} | {
    f"dinov2-{size}14{end}" for size in "sblg" for end in ("", "-reg")
}


NEW_SOURCES = {source for source, _ in NEWER}
TEACHING = {"source": "teaching-matters"}


def where(**facts):
    """The published numbers with some facts, in order."""
    return [one for one in all_published() if all(getattr(one, name) == fact for name, fact in facts.items())]


def values(**facts):
    return [one.value for one in where(**facts)]


def said(names, **facts):
    """What is said, by the names of fields, of the numbers with some facts."""
    return {tuple(getattr(one, name) for name in names.split()) for one in where(**facts)}


@pytest.mark.parametrize("subject", NEWER)
def test_the_numbers_of_today_add_up(subject):
    own, (total, comparable) = where(source=subject[0], task=subject[1]), NEWER[subject]
    assert sum(one.value for one in own) == pytest.approx(total)
    assert sum(one.comparable for one in own) == comparable


def test_every_source_has_its_numbers_and_every_file_and_task_its_source():
    assert {source: len(where(source=source)) for source in SOURCES} == COUNTS
    assert {path.stem for path in FOLDER.glob("*.csv")} == {*COUNTS, "sources"}
    assert {each for each in said("source task") if each[0] in NEW_SOURCES} == set(NEWER)


def test_segmentation_is_compared_where_the_memory_is_that_of_the_protocol():
    own = {"source": "hummingbird-readme"}
    assert values(**own, comparable=True) == [37.2, 44.9, 70.2, 69.1, 64.6, 62.3]
    assert {one.protocol for one in where(**own) if "10^2" in one.conditions} == {"hummingbird"}
    assert said("dataset", **own) == {(VOC_2012_AUG.name,)}
    assert values(**own, second_hand=True) == [55.9]


@pytest.mark.parametrize("backbone", ROWS)
def test_the_rows_of_the_main_table_add_up(backbone):
    cells, (total, layers) = where(**TEACHING, table="Table 5", backbone=backbone), ROWS[backbone]
    assert sum(one.value for one in cells) == pytest.approx(total)
    assert sum(one.layer for one in cells) == layers


def test_the_main_table_is_of_the_best_blocks_and_the_paper_protocol():
    assert said("protocol rule tap", **TEACHING, table="Table 5") == {("paper", "best", "block")}
    decimals = said("task chosen_decimals", **TEACHING, table="Table 5")
    assert {task: places for task, places in decimals if places is not None} == {"davis": 1}
    assert len(decimals) == len({task for task, _ in decimals})


def test_the_other_tables_of_teaching_matters():
    assert values(**TEACHING, table="Table 1", metric="PCK@0.1", backbone="mae-b16") == [22.74]
    assert values(**TEACHING, table="Table 5", metric="PCK@0.1", backbone="mae-b16") == [22.65]
    squares = where(**TEACHING, table="Table 4")
    assert [one.backbone for one in squares] == list(ROWS)
    assert sum(one.value for one in squares) == 677
    assert values(**TEACHING, table="Table 4", backbone="mae-h14") == [36]
    facts = said("protocol rule chosen_decimals", **TEACHING, table="Table 4")
    assert facts == {("paper-squares", "best", 1)}
    assert [one.layer for one in squares[:6]] == [12, 10, 10, 10, 9, 19]  # column Normal, of FS
    assert sum(one.layer or 0 for one in squares) == 266
    probes = where(**TEACHING, table="Table 6")
    sums = [sum(one.value for one in probes[start : start + 6]) for start in range(0, 24, 6)]
    assert sums == pytest.approx([356.17, 316.50, 414.92, 398.22])
    assert [one.pooling for one in probes] == (["cls"] * 6 + ["mean"] * 6) * 2
    assert said("rule layer", **TEACHING, table="Table 6", backbone="beit-b16") == {("layer", 8)}
    assert said("task comparable", **TEACHING, table="Table 6") == {("linear", False)}
    for metric, printed in (("top1", [73.03, 37.37]), ("top1-bn", [76.39, 68.09])):
        assert values(**TEACHING, table="Table 6", metric=metric, backbone="dino-b16") == printed
    floor = [0.1, 0.49, 2, 1, 4, 3, 3, 8, 6, 1.32, 0.34, 0.02]
    assert values(**TEACHING, table="random baseline") == floor


def test_the_tables_of_vit():
    assert sum(values(source="vit", table="Table 8")) == pytest.approx(509.945)
    facts = said("task metric decimals comparable", source="vit", table="Table 8")
    assert facts == {("fewshot", "top1-5shot", 3, False)}
    for backbone, mean in {"vit-h14-jft": 77.6, "vit-l16-jft": 76.3, "vit-l16-in21k": 72.7}.items():
        own = where(source="vit", table="Table 9", backbone=backbone)
        assert [one.dataset for one in own] == [entry.name for entry in VTAB]
        assert round(sum(one.value for one in own) / len(own), 1) == mean
    assert said("metric comparable", source="vit", table="Table 9") == {("top1", False)}


@pytest.mark.parametrize(
    ("source", "metric", "printed"),
    [
        ("dino-readme", "top-1", [74.5, 78.3, 76.1, 77.4, 67.5]),
        ("dinov2-readme", "top-1", [79.0, 82.1, 83.5, 83.5, 79.1, 82.0, 83.8, 83.7]),
        ("dino", "mAP medium", [41.8, 63.1, 35.4, 55.9, 33.5, 63.0]),
        ("dino", "mAP hard", [13.7, 34.4, 11.1, 27.5, 8.9, 37.2]),
        ("dino", "J&F", [61.8, 62.3, 69.9, 71.4, 66.0]),
        ("dino", "J", [60.2, 60.7, 66.6, 67.9]),
        ("dino", "F", [63.4, 63.9, 73.1, 74.9]),
        ("revisitop-readme", "mAP easy", [84.81, 92.12]),
        ("revisitop-readme", "mAP medium", [64.67, 77.2]),
        ("revisitop-readme", "mAP hard", [38.47, 56.32]),
        ("spair-others", "PCK@0.1", [33.3, 55.6]),
    ],
)
def test_the_numbers_of_others(source, metric, printed):
    assert values(source=source, metric=metric) == printed


def test_networks_that_were_trained_on_the_task_have_no_rank():
    assert said("source table", frozen=False) == {("vit", "Table 9")}
    rows = literature(all_published(), {})
    tuned = rows[~rows["frozen"].astype(bool)]
    assert len(tuned) == 57
    assert tuned["rank"].isna().all()
    assert {printed_rank(row) for row in tuned.to_dict("records")} == {"fine-tuned"}


def test_second_hand_numbers_are_marked():
    told = {"dino", "spair-others", "hummingbird-readme", "pe-paper", "dinov3-paper", "omniprobe"}
    assert said("source", second_hand=True) == {(source,) for source in told}
    assert said("second_hand", source="dino") == {(True,)}


def test_names_and_layers_are_those_of_records():
    depths = {spec.name: spec.depth for spec in all_specs()}
    known = {*depths} | ENTRIES_TO_COME
    older = {name for source, name in said("source backbone") if source not in NEW_SOURCES}
    assert older <= known | NOT_ENTRIES
    run = said("source backbone", comparable=True)
    assert {name for source, name in run if source not in MEASURED_BY_OTHERS} <= known
    assert said("task dataset", comparable=True) == {
        ("knn", ImageNetEntry().name),
        ("retrieval", ROXFORD5K.name),
        ("retrieval", RPARIS6K.name),
        ("davis", DavisEntry().name),
        ("spair", SpairEntry().name),
        ("segment", VOC_2012_AUG.name),
    }
    layers = [(one.layer, depths[one.backbone]) for one in all_published() if one.backbone in depths]
    assert all(1 <= layer <= depth for layer, depth in layers if layer is not None)


def test_perception_encoder_prints_the_best_layer_and_the_last_of_each_network():
    own = {"source": "pe-paper", "table": "Table 13"}
    index = {(one.backbone, one.task): one.layer for one in where(**own, rule="best")}
    assert len(index) == len(where(**own)) / 2 == 27
    tasks = ("davis", "segment-trained", "depth-trained")
    assert [index["pe-core-g14", task] for task in tasks] == [32, 44, 39]
    assert said("printed", **own, metric="RMSE") == {("error",)}
    assert said("input_size", **own, task="davis") == {(224,), (384,), (448,)}


def test_each_size_of_table_5_has_its_protocol_and_table_4_the_better_of_two_places():
    own = {"source": "dinov3-paper"}
    largest = said("protocol value", **own, task="davis", backbone="dinov3-7b16")
    assert largest == {("dinov3-480", 71.1), ("dinov3-960", 79.7), ("dinov3-1440", 83.3)}
    sizes = Counter(size for size, _ in said("protocol backbone", **own, task="davis"))
    assert {*sizes.values()} == {8}
    assert said("protocol rule tap", **own, task="spair") == {("dinov3", "either", "block")}


def test_omniprobe_reads_the_class_token_or_the_mean_of_last_blocks():
    own = {"source": "omniprobe", "task": "knn"}
    assert said("protocol rule tap", **own) == {("omniprobe", "last", "block")}
    assert len(said("backbone", **own, pooling="mean")) == 8
    for backbone, pooling in (("pe-spatial-b16", "mean"), ("mae-b16", "cls"), ("dino-b16", "cls")):
        assert said("pooling", **own, backbone=backbone) == {(pooling,)}


GOOD = asdict(README) | {"source": "dino", "table": "Table 9", "tap": "block", "rule": "best", "layer": "12"}
GOOD |= {"chosen_decimals": "", "value": "76.10", "decimals": "2", "second_hand": "no", "frozen": "yes"}


def write(folder: Path, *rows: dict[str, str], columns: tuple[str, ...] = COLUMNS) -> Path:
    path = folder / "dino.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_a_row_is_read_with_its_precision(tmp_path):
    (one,) = read_published(write(tmp_path, GOOD))
    assert (one.value, one.decimals, one.half_unit, one.layer) == (76.1, 2, pytest.approx(0.005), 12)
    assert one.comparable
    assert not replace(one, not_comparable="other data").comparable
    (large,) = read_published(write(tmp_path, GOOD | {"input_size": "448"}))
    assert large.input_size == 448


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"source": "dinov2-readme"}, "expected the source dino of the file's name, not dinov2-readme"),
        ({"source": "blog"}, "source must be one of teaching-matters, "),
        ({"backbone": " "}, "backbone may not be empty"),
        ({"metric": "", "value": ""}, "metric, value may not be empty"),
        ({"task": "knm"}, "there is no task 'knm'"),
        ({"metric": "top-2"}, "knn has no metric 'top-2'; it has top-1, top-5"),
        ({"protocol": "mine"}, "protocol must be one of standard, paper, "),
        ({"protocol": "none"}, "found the protocol none and the reason ''"),
        ({"not_comparable": "other data"}, "found the protocol standard and the reason 'other data'"),
        ({"pooling": "max"}, "pooling must be one of cls, mean, cls+mean, gem, patchwise, grid"),
        (
            {"rule": "final", "layer": "", "tap": "block"},
            "tap and rule are both final or neither is; found block, final",
        ),
        ({"tap": "final"}, "found final, best"),
        ({"rule": "layer", "layer": ""}, "the rule layer needs the number of the block"),
        ({"rule": "last"}, "the rule last takes no layer; found 12"),
        ({"layer": "twelve"}, "layer must be a whole number or empty, not 'twelve'"),
        ({"value": "76.1"}, "the value 76.1 has not the decimals that are given: 2"),
        ({"value": "nan"}, "a percentage from 0 to 100, not 'nan'"),
        ({"value": "176.10"}, "a percentage from 0 to 100, not '176.10'"),
        ({"second_hand": "maybe"}, "second_hand must be one of yes, no, not 'maybe'"),
    ],
)
def test_a_wrong_row_is_named(tmp_path, changes, words):
    path = write(tmp_path, GOOD | {"table": "Table 8"}, GOOD | changes)
    with pytest.raises(InputError) as caught:
        read_published(path)
    assert str(caught.value).startswith(f"{path}, line 3: ")
    assert words in str(caught.value)


def test_a_wrong_file_is_named(tmp_path):
    with pytest.raises(InputError, match="line 3: says the same as line 2"):
        read_published(write(tmp_path, GOOD, GOOD | {"value": "76.20"}))
    with pytest.raises(InputError, match="; found without source"):
        read_published(write(tmp_path, GOOD, columns=COLUMNS[1:]))
    with pytest.raises(InputError, match="cannot read the published numbers"):
        read_published(tmp_path / "dinov2-readme.csv")
    path = write(tmp_path, GOOD)
    path.write_text(path.read_text() + "dino,Table 9\n")
    with pytest.raises(InputError, match="line 3: expected as many cells as columns"):
        read_published(path)


def test_six_columns_are_enough_and_others_may_come_in_any_order(tmp_path):
    row = {name: GOOD[name] for name in NEEDED}
    (short,) = read_published(write(tmp_path, row, columns=NEEDED))
    usual = {"table": "", "conditions": "", "pooling": "", "layer": None, "input_size": 224}
    assert short == replace(read_published(write(tmp_path, GOOD))[0], **usual)
    (own,) = read_published(write(tmp_path, row | {"rule": "final"}, columns=("rule", *reversed(NEEDED))))
    assert (own.tap, own.rule, own.decimals) == ("final", "final", 2)
    for column in ("table", "note"):
        with pytest.raises(InputError, match=f"; found with {column}"):
            read_published(write(tmp_path, row, columns=(*NEEDED, column, column)))


def test_lines_are_those_of_the_file_as_spreadsheets_write_it(tmp_path):
    path = write(tmp_path, GOOD, GOOD | {"table": "Table 8", "value": "none"})
    head, *rows = path.read_text().splitlines()
    path.write_text("\ufeff" + "\n".join([head, "", *rows]))
    with pytest.raises(InputError, match="line 4: the value must be a percentage"):
        read_published(path)


def test_the_readme_prints_what_its_source_prints() -> None:
    text = (Path(__file__).parents[3] / "README.md").read_text(encoding="utf-8")
    heads = (("knn", "top-1", "imagenet"), ("retrieval", "mAP medium", "roxford5k"))
    heads += (("spair", "PCK@0.1", "spair-71k-test"), ("davis", "J&F", "davis-2017-val"))
    numbers = {
        (number.backbone, number.task, number.metric, number.dataset): number
        for number in all_published()
        if (number.source, number.table, number.protocol) == ("teaching-matters", "Table 5", "paper")
    }
    rows = re.findall(r"^\| \w+, `([\w-]+)` \|(.*)\|$", text, re.MULTILINE)
    assert len(rows) == 6
    printed = {
        (backbone, *head): re.fullmatch(r"\**([\d.]+)\** \((?:layer )?(\d+)\)", cell.strip())
        for backbone, cells in rows
        for head, cell in zip(heads, cells.split("|"), strict=True)
    }
    for key, found in printed.items():
        assert found is not None, key
        number = numbers[key]
        assert (found[1], found[2]) == (f"{number.value:.{number.decimals}f}", str(number.layer)), key
    for head in heads:
        values = {backbone: numbers[backbone, *head].value for backbone, _ in rows}
        bold = {key[0] for key, found in printed.items() if key[1:] == head and found[0].startswith("**")}
        assert bold == {name for name, value in values.items() if value == max(values.values())}
