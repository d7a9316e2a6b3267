"""Runs that read the inside of blocks, and runs at other input sizes."""

from pathlib import Path

import numpy as np
import pytest

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.similarity import NO_LAST_BLOCKS
from tests.benchmark.conftest import Whole
from tests.benchmark.runs import files, run, run_from_store
from tests.leaderboards.shown import render_page, write_pages


def test_a_vit_and_a_resnet_are_compared_at_the_taps_of_their_kinds(tmp_path: Path, data: Path) -> None:
    backbones = ["mini-fs", "mini-resnet"]
    records = run(tmp_path, backbones, "cka", data=data, layers="2", taps=["mlp", "branch"])
    rows = records[(records["pooling"] == "patch") & (records["metric"] == "CKA")]
    sides = {(*pair,) for pair in rows[["backbone", "tap", "other", "other_tap"]].itertuples(index=False)}
    assert sides == {
        ("mini-fs", "mlp", "mini-fs", "mlp"),
        ("mini-fs", "mlp", "mini-resnet", "branch"),
        ("mini-resnet", "branch", "mini-resnet", "branch"),
    }
    assert rows["value"].notna().all()


def test_depth_wise_cka(tmp_path: Path, data: Path) -> None:
    records = run(tmp_path, ["mini-fs"], "cka", data=data, layers="1-2", taps=["norm1", "norm2"])
    rows = records[(records["pooling"] == "mean") & (records["metric"] == "CKA")]
    order = [(1, "norm1"), (1, "norm2"), (2, "norm1"), (2, "norm2")]
    places = list(zip(rows["layer"], rows["tap"], rows["other_layer"], rows["other_tap"], strict=True))
    assert places == [(*first, *second) for first in order for second in order]
    assert NO_LAST_BLOCKS in render_page(records, "standard")


@pytest.mark.parametrize(
    ("name", "taps"),
    [
        ("mini-fs", "norm1,query,key,value,heads,attention,mid,norm2,mlp_hidden,mlp"),
        ("mini-resnet", "skip,branch"),
    ],
)
def test_tasks_on_vectors_and_grids_read_the_inside(name: str, taps: str, tmp_path: Path, data: Path) -> None:
    records = run(tmp_path, [name], "knn", "davis", data=data, layers="2", taps=taps)
    assert (records["reason"] == "").all()
    main = records[records["primary"] & (records["backbone"] == name)]
    for task in ("knn", "davis"):
        own = main[main["task"] == task]
        assert set(own["layer"]) == {2}
        assert set(own["tap"]) == set(taps.split(","))
        assert own["value"].notna().all()
    assert main[main["task"] == "davis"]["value"].nunique() > 1  # taps are not one and the same


def test_leaderboards_choose_among_blocks_only(again: Path, data: Path, whole: Whole) -> None:
    before = files(again / "cache")
    options = {"data": data, "layers": "1,final", "taps": ["block", "norm1", "mlp"]}
    records = run(again, ["mini-fs"], "knn", "davis", **options)
    assert before.items() <= files(again / "cache").items()
    own = records[(records["backbone"] == "mini-fs") & records["task"].isin(["knn", "davis"])]
    assert set(zip(own["layer"], own["tap"], strict=True)) == {
        (1, "block"),
        (1, "norm1"),
        (1, "mlp"),
        (12, "final"),
    }
    assert own[own["primary"] & (own["tap"] == "mlp")]["value"].notna().all()
    expected = Board.of(whole.records).best
    found = Board.of(records).best
    assert found["value"].tolist() == pytest.approx(expected["value"].tolist(), abs=1e-4)
    numbers, _ = write_pages(own[own["task"] == "knn"], again / "pages")
    assert ",1,norm1," in numbers.read_text()
    run_from_store(again, ["mini-fs"], "knn", "davis", **options)


def test_the_rule_of_interpolation_changes_scores_and_fingerprints(tmp_path: Path, data: Path) -> None:
    options = {"data": data, "layers": "1", "limit": 1, "cache": tmp_path / "cache"}
    rules = ("huggingface", "dino")
    frames = [run(tmp_path / rule, ["mini-fs"], "davis", interpolation=rule, **options) for rule in rules]
    assert len({frame["fingerprint"].iloc[0] for frame in frames}) == 2
    assert [set(frame["interpolation"]) for frame in frames] == [{"huggingface"}, {"dino"}]
    assert np.isfinite([frame["value"].iloc[0] for frame in frames]).all()
