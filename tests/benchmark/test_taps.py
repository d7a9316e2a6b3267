"""Runs that read the inside of blocks, and runs at other input sizes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layerboard.benchmark.plan.layers import select_layers, with_taps
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.similarity import NO_LAST_BLOCKS
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer, Stage
from layerboard.zoo.spec.origin import OBJECT
from tests.benchmark.conftest import Whole
from tests.benchmark.doubles import SPEC
from tests.benchmark.runs import Tally, files, run
from tests.leaderboards.shown import render_page, write_pages

TOKENS = replace(SPEC, heads=2)


@pytest.mark.parametrize(
    ("layers", "taps", "expected"),
    [
        ("all", ("block",), "1 2 3 final"),
        ("all", ("norm1", "norm2"), "1.norm1 1.norm2 2.norm1 2.norm2 3.norm1 3.norm2"),
        ("0-1,final", ("block", "attention", "mlp"), "0 1.attention 1.mlp 1 final"),
    ],
)
def test_taps_of_layers(layers: str, taps: tuple[str, ...], expected: str) -> None:
    chosen = select_layers(layers, TOKENS, taps)  # type: ignore[arg-type]
    assert " ".join(map(str, chosen)) == expected


def test_taps_of_convnets() -> None:
    chosen = select_layers("1-2", SPEC, ("block", "skip", "branch"))
    assert " ".join(map(str, chosen)) == "1.skip 1.branch 1 2.skip 2.branch 2"
    assert select_layers("3", SPEC, ("input",)) == (Layer(3, "input"),)


def test_layers_are_read_at_the_taps_that_a_backbone_has() -> None:
    chosen = select_layers("1-2", TOKENS, ("norm1", "skip"))
    assert " ".join(map(str, chosen)) == "1.norm1 2.norm1"
    assert " ".join(map(str, select_layers("1-2", SPEC, ("norm1", "skip")))) == "1.skip 2.skip"
    own = replace(TOKENS, origin=OBJECT)
    with pytest.raises(InputError, match="double has none of the taps asked for: leave it or --taps out"):
        select_layers("all", own, ("norm1",))
    assert select_layers("1", replace(own, taps=("mlp", "norm1")), ("norm1",)) == (Layer(1, "norm1"),)
    with pytest.raises(InputError, match="layers '0,final' have no mlp"):
        select_layers("0,final", TOKENS, ("mlp",))
    assert str(select_layers("2,3", TOKENS, ("block", "block-normed"))[1]) == "2.block-normed"
    stages = replace(TOKENS, stages=(Stage(2, 4, 4), Stage(1, 8, 8)))  # the norm takes the last stage alone
    assert select_layers("all", stages, ("block-normed",)) == (Layer(3, "block-normed"),)
    with pytest.raises(
        InputError, match="layers '1-2' have no block-normed in double; blocks from 3 on have"
    ):
        select_layers("1-2", stages, ("block-normed",))
    floor = replace(SPEC, family="random", has_final=False)
    assert select_layers("all", floor, ("norm1",)) == (Layer(1), Layer(2), Layer(3))


def test_what_taps_leave_out_is_said_once() -> None:
    vits = [replace(TOKENS, name=name) for name in ("a", "b")]
    convnet, floor = replace(SPEC, name="c"), replace(SPEC, name="r", family="random")
    both = [*vits, convnet, floor]
    assert with_taps(both, ("block",)) == (both, [])
    assert with_taps(both, ("input",)) == (both, [])
    assert with_taps(both, ("block", "norm1", "mlp", "branch")) == (
        both,
        ["left out: branch of a, b: no such tap", "left out: norm1, mlp of c: no such tap"],
    )
    assert with_taps(both, ("norm1",)) == ([*vits, floor], ["left out: c, without norm1"])
    bare = replace(convnet, has_final=False)
    assert with_taps([*vits, bare], ("block", "block-normed")) == (
        [*vits, bare],
        ["left out: block-normed of c: no final norm is known"],
    )
    with pytest.raises(InputError, match="no block of c has the tap block-normed, as no final norm is known"):
        with_taps([bare], ("block-normed",))
    with pytest.raises(InputError, match="no block of a, b has the tap skip; --taps takes block, input, nor"):
        with_taps([*vits, floor], ("norm1", "skip"))
    assert with_taps([floor], ("norm1",)) == ([floor], [])


def test_a_vit_and_a_resnet_are_compared_at_the_taps_of_their_kinds(tmp_path: Path, data: Path) -> None:
    backbones = ["mini-fs", "mini-resnet"]
    records = run(tmp_path, backbones, "cka", data=data, layers="2", taps=["mlp", "branch"])
    assert records.attrs["failures"] == []
    rows = records[records["pooling"] == "patch"]
    sides = {(*pair,) for pair in rows[["backbone", "tap", "other", "other_tap"]].itertuples(index=False)}
    assert sides == {
        ("mini-fs", "mlp", "mini-fs", "mlp"),
        ("mini-fs", "mlp", "mini-resnet", "branch"),
        ("mini-resnet", "branch", "mini-resnet", "branch"),
    }
    assert rows["value"].notna().all()


def test_depth_wise_cka(tmp_path: Path, data: Path) -> None:
    records = run(tmp_path, ["mini-fs"], "cka", data=data, layers="1-2", taps=["norm1", "norm2"])
    rows = records[records["pooling"] == "mean"]
    assert records.attrs["failures"] == []
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
    assert records.attrs["failures"] == []
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
    assert (own["value"].notna() == (own["reason"] == "")).all()
    assert own[own["primary"] & (own["tap"] == "mlp")]["value"].notna().all()
    expected = Board.of(whole.records).best
    found = Board.of(records).best
    assert found["value"].tolist() == pytest.approx(expected["value"].tolist(), abs=1e-4)
    numbers, _ = write_pages(own[own["task"] == "knn"], again / "pages")
    assert ",1,norm1," in numbers.read_text()
    with Tally().watching() as tally:
        run(again, ["mini-fs"], "knn", "davis", **options)
    assert tally.loads == []


def test_the_rule_of_interpolation_changes_scores_and_fingerprints(tmp_path: Path, data: Path) -> None:
    options = {"data": data, "layers": "1", "limit": 1, "cache": tmp_path / "cache"}
    rules = ("huggingface", "dino")
    frames = [run(tmp_path / rule, ["mini-fs"], "davis", interpolation=rule, **options) for rule in rules]
    assert len({frame["fingerprint"].iloc[0] for frame in frames}) == 2
    assert [set(frame["interpolation"]) for frame in frames] == [{"huggingface"}, {"dino"}]
    assert np.isfinite([frame["value"].iloc[0] for frame in frames]).all()
