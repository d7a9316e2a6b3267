"""Variants on the page: each beside the plain backbone, in tables of their own, and what their names mean."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.leaderboards.blocks.blocks import Table
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.frames import BoardBackbone, backbones_of
from layerboard.leaderboards.board.tidy import tidy_frame
from layerboard.leaderboards.findings.reproduce import reproduce
from layerboard.leaderboards.records.files import task_key
from layerboard.leaderboards.records.record import Record
from layerboard.leaderboards.sections.variants import TITLE, Gain, gains_of, references_of, variant_blocks
from layerboard.zoo.spec import UNTRAINED, Retraining, Variant
from tests.leaderboards.builder import NAN, floor, frame, layers, unsure, write_layers
from tests.leaderboards.findings.test_reproduce import README, final
from tests.leaderboards.shown import render_blocks, render_page

LARGE = {"backbone": "mini-dino@128px", "input_size": 128}
CLIP = {"backbone": "mini-clip", "family": "CLIP"}
RANDOM = np.random.default_rng(0)
PLAIN = [100.0 * (RANDOM.random(300) < share) for share in (0.3, 0.5, 0.4)]
WHITENED = [np.where(RANDOM.random(300) < 0.2, 100.0, values) for values in PLAIN]
LARGER = [WHITENED[1], PLAIN[0], PLAIN[2]]
WAYS = {"": PLAIN, "whiten": WHITENED, "zscore": PLAIN}


def scores(columns: list[np.ndarray], **changes: object) -> list[Record]:
    return unsure(layers([float(column.mean()) for column in columns], **changes), chosen={2: 1.0})


def records() -> pd.DataFrame:
    """One backbone at two sizes and with two transforms; another alike at both, and without z-scores."""
    missing = [replace(one, reason="features are not finite") for one in layers([NAN] * 3, **CLIP)]
    return frame(
        *(scores(columns, transform=transform) for transform, columns in WAYS.items()),
        scores(LARGER, **LARGE),
        layers([20.0, 10.0, 10.0], **CLIP),
        layers([20.0, 10.0, 10.0], family="CLIP", backbone="mini-clip@126px", input_size=126),
        [replace(one, transform="zscore") for one in missing],
        floor([3.0, 5.0], backbone="mini-random", input_size=64),
        floor([6.0, 8.0], backbone="mini-random@128px", input_size=128),
    )


@pytest.fixture
def items(tmp_path: Path) -> Path:
    sides = [("mini-dino", transform, columns) for transform, columns in WAYS.items()]
    for name, transform, columns in (*sides, ("mini-dino@128px", "", LARGER)):
        key = task_key("knn", "mini-imagenet", "standard", transform)
        write_layers(tmp_path / "items", name, columns, key)
    return tmp_path / "items"


def gains(found: pd.DataFrame, items: Path | None = None) -> dict[str, Gain]:
    """The gains of a board by transform or, without one, by name."""
    every = gains_of(Board.of(found, items=items))
    return {gain.best.transform or gain.best.backbone: gain for gain in every}


@pytest.mark.parametrize(
    ("names", "references"),
    [
        (["a", "b@448px"], {}),
        (["a", "a@448px", "a@112px"], {"a@448px": "a", "a@112px": "a"}),
        (["a@112px", "a@448px"], {"a@448px": "a@112px"}),
        (["a", "a@bfloat16", "a@float16"], {"a@float16": "a", "a@bfloat16": "a"}),
        (["a@fast-resize", "a@bfloat16"], {"a@fast-resize": "a@bfloat16"}),
        (["a", "a@9px", "a@9px@bfloat16"], {"a@9px": "a", "a@9px@bfloat16": "a@9px"}),
        (["a@bfloat16", "a@9px@bfloat16"], {"a@9px@bfloat16": "a@bfloat16"}),
    ],
)
def test_a_variant_is_compared_with_what_differs_in_one_thing(
    names: list[str], references: dict[str, str]
) -> None:
    assert references_of(names) == references_of(names[::-1]) == references


def test_gains_are_paired_over_the_same_items(items: Path) -> None:
    found = gains(records(), items)
    assert list(found) == ["mini-clip@126px", "mini-dino@128px", "whiten", "zscore"]
    difference = WHITENED[1] - PLAIN[1]
    error = 1.96 * difference.std() / len(difference) ** 0.5
    for name, layer in (("whiten", 2), ("mini-dino@128px", 1)):
        gain = found[name]
        assert (gain.plain.layer, gain.best.layer, gain.plain.depth) == (2, layer, 3)
        assert gain.gain.value == pytest.approx(difference.mean())
        ends = [difference.mean() - error, difference.mean() + error]
        assert [gain.gain.low, gain.gain.high] == pytest.approx(ends, abs=0.8)
    assert found["whiten"].held_out.value == pytest.approx(found["whiten"].gain.value)
    nothing = found["zscore"]
    assert (nothing.gain.value, nothing.gain.low, nothing.gain.high) == (0, 0, 0)
    assert [name for name, gain in found.items() if gain.alike] == ["mini-clip@126px", "zscore"]


def test_the_plain_layer_is_kept_beside_another_best_one() -> None:
    found = records()
    third = (found["transform"] == "whiten") & (found["layer"] == 3)
    found.loc[third, "value"] = 99.0
    gain = gains(found)["whiten"]
    assert (gain.plain.layer, gain.best.layer) == (2, 3)
    assert gain.gain.value == pytest.approx(99 - PLAIN[1].mean())
    assert gain.same_layer.value == pytest.approx(WHITENED[1].mean() - PLAIN[1].mean())
    assert np.isnan(gain.gain.low)


def test_another_training_of_a_network_is_a_variant_of_it() -> None:
    names = ("full", "again", "raw", "other", "other-raw")
    found = frame(*(layers([10.0 * at, 5.0], backbone=name) for at, name in enumerate(names, 1)))
    facts = {"again": ("full", "another seed"), "raw": ("full", UNTRAINED), "other-raw": ("other", UNTRAINED)}
    board = Board.of(found, trainings={name: Retraining(*fact) for name, fact in facts.items()})
    assert {gain.best.backbone: (gain.plain.backbone, gain.gain.value) for gain in gains_of(board)} == {
        "again": ("full", 10.0),
        "raw": ("full", 20.0),
    }
    tables = [block.frame["variant"].tolist() for block in variant_blocks(board) if isinstance(block, Table)]
    assert tables[0] == ["again (another seed)", "raw (untrained)"]


def test_every_variant_has_a_row_and_every_task_a_column(items: Path) -> None:
    davis = {"task": "davis", "dataset": "mini-davis", "pooling": "grid", "metric": "J&F"}
    more = frame(layers([45.0], **davis), layers([60.0], **davis, **LARGE))
    found = pd.concat([records(), more], ignore_index=True)
    blocks = variant_blocks(Board.of(found, items=items))
    changes, same, held_out, scored = [block.frame for block in blocks if isinstance(block, Table)]
    assert [*changes] == ["backbone", "variant", "knn top-1", "davis J&F"]
    cells = changes.set_index(["backbone", "variant"])
    assert [*cells.index] == [
        ("mini-clip", "mini-clip@126px"),
        *(("mini-dino", name) for name in ("mini-dino@128px", "whiten", "zscore")),
    ]
    assert cells["knn top-1"].str.contains(r"^alike$|^\+\d+\.\d \(.* to .*\)$").all()
    assert [*cells["davis J&F"]] == ["", "+15.0", "", ""]
    assert [*same["variant"]] == [*held_out["variant"]] == [*changes["variant"]]
    dino = scored[scored["backbone"] == "mini-dino"].set_index("variant")["davis J&F"]
    assert dino[["as it is", "mini-dino@128px"]].tolist() == ["45.0 (1/1 grid)", "60.0 (1/1 grid)"]


def test_no_other_table_and_no_number_of_the_page_has_transformed_scores(items: Path) -> None:
    plain = records()
    plain = plain[plain["transform"] == ""].reset_index(drop=True)
    with_them, without = (render_page(found, "mini", items) for found in (records(), plain))
    before, _, rest = with_them.partition(f"## {TITLE}")
    assert without.startswith(before)
    assert ("| whiten" in rest, "whiten" in without) == (True, False)
    assert "random floor@128px" in before
    lacking = "mini-clip: knn on mini-imagenet (standard) with zscore, 3 layers: features are not finite."
    assert lacking in rest
    pd.testing.assert_frame_equal(
        tidy_frame(Board.of(records(), "mini")), tidy_frame(Board.of(plain, "mini"))
    )


def test_no_section_where_every_backbone_is_as_it_is() -> None:
    apart = frame(layers([1.0]), layers([2.0], **LARGE, task="davis", metric="J&F"))  # no column has two
    for found in (frame(layers([1.0, 2.0])), frame(layers([1.0, 2.0], **LARGE)), apart):
        assert variant_blocks(Board.of(found)) == []


def test_without_items_the_page_says_that_intervals_are_missing() -> None:
    text = render_blocks(variant_blocks(Board.of(records())))
    assert "No difference has an interval: per-item scores were missing" in text.replace("\n", " ")


def test_variants_of_one_backbone_stand_together_from_the_smallest_on() -> None:
    names = ["mini-dino@1024px", "mini-dino", "mini-dino@448px", "mini-dino@bfloat16", "mini-dino-b"]
    found = backbones_of(frame(*(layers([1.0], backbone=name) for name in names)))
    ordered = ["mini-dino", "mini-dino@bfloat16", "mini-dino@448px", "mini-dino@1024px", "mini-dino-b"]
    assert [one.name for one in found] == ordered
    assert BoardBackbone("random@448px", "random", False, 1).label == "random floor@448px"
    assert BoardBackbone("random", "random", False, 1).label == "random floor"


def test_a_name_means_a_variant_and_a_variant_has_that_name() -> None:
    name = "dino-b16@448px@bfloat16@fast-resize"
    assert Variant.of(name) == Variant("dino-b16", 448, "bfloat16", fast_resize=True)
    assert str(Variant.of(name)) == name
    for name in ("dino-b16", "owner/name@448", "owner/name@1f0px", "@448px"):
        assert Variant.of(name) == Variant(name)


def test_published_numbers_stand_beside_the_size_that_they_name() -> None:
    sized = final(80.0, backbone=f"{README.backbone}@518px", input_size=518)
    rows = frame([final(76.1), sized])
    found = reproduce(rows, [README, replace(README, input_size=518, conditions="larger")])
    assert found["measured"].tolist() == [76.1, 80.0]
