"""Runs of analyses: what a backbone is asked without a pass, and what goes on inside its blocks."""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.tasks.analyses.receptive_field import ReceptiveFieldTask
from tests.benchmark.conftest import BACKBONES
from tests.benchmark.runs import Tally, assert_same_records, run, run_from_store
from tests.benchmark.test_own_backbones import example

QUESTIONS = ("receptive-field", "inspect")


@pytest.fixture(autouse=True)
def _one_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReceptiveFieldTask, "channels", lambda self, width: [0])


def ask(place: Path, data: Path, **options: object) -> tuple[Tally, pd.DataFrame]:
    with Tally().watching() as tally:
        records = run(place, BACKBONES, *QUESTIONS, data=data, layers="1", **options)
    return tally, records


def test_questions_are_answered_once_and_not_again(data: Path, tmp_path: Path) -> None:
    tally, records = ask(tmp_path, data)
    assert sorted(tally.loads) == sorted(BACKBONES)
    assert not (tmp_path / "cache" / "features").exists()
    fields = records[records["task"] == "receptive-field"]
    taps = {name: set(rows["tap"]) for name, rows in fields.groupby("backbone")}
    assert taps == {"mini-fs": {"attention", "mid", "mlp", "block"}, "mini-resnet": {"branch", "block"}}
    assert fields["value"].dropna().between(0, 1).all()
    # one channel may be silenced by the activation in all images
    assert set(fields.loc[fields["value"].isna(), "reason"]) <= {
        "no pixel changes it: all gradients are zero"
    }
    assert set(fields.loc[fields["value"].notna(), "n"]) == {12}
    whole = records[records["task"] == "inspect"]
    assert set(whole["layer"]) == {-1}
    lacking = whole[whole["value"].isna()]
    assert lacking[["backbone", "metric"]].to_numpy().tolist() == [["mini-resnet", "position-distance-rho"]]
    assert lacking["reason"].str.contains("position|embedding").all()
    with np.load(tmp_path / "out" / "arrays" / "mini-fs" / "receptive-field.imagenet.standard.npz") as arrays:
        assert arrays["erf"].shape == (1, 4, 64, 64)
    again, same = ask(tmp_path, data)
    assert again.loads == []
    assert_same_records(same, records)


def test_gradients_in_less_than_float32_and_images_that_are_gone_say_why(
    own_data: Path, tmp_path: Path
) -> None:
    _, records = ask(tmp_path / "first", own_data, dtype="bfloat16")
    fields = records[records["task"] == "receptive-field"]
    assert fields["value"].isna().all()
    assert fields["reason"].str.contains("give --dtype float32").all()
    assert set(zip(fields["layer"], fields["tap"], strict=True)) == {(1, "block")}
    for path in (own_data / "imagenet" / "train").rglob("*.JPEG"):
        path.write_bytes(b"no image")
    _, records = ask(tmp_path / "second", own_data, fails=True)
    failures = records.attrs["failures"]
    assert len(failures) == len(BACKBONES)
    assert all("receptive-field" in line and "images that can be decoded" in line for line in failures)


INSIDE = ("residuals", "residual-cka", "locality")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Two objects of somebody's own, which show nothing inside their blocks; one of them has heads."""
    monkeypatch.chdir(tmp_path)
    text = example("own_backbones.md", "class Mixer")
    (tmp_path / "own_inside_mixer.py").write_text(text)
    headed = text.replace("own-mixer", "own-attender").replace("heads=None", "heads=4")
    (tmp_path / "own_inside_attender.py").write_text(headed)
    names = ["own_inside_mixer", "own_inside_attender"]
    yield [f"{name}:Mixer" for name in names]
    for name in names:
        sys.modules.pop(name, None)


def of(records: pd.DataFrame, task: str, backbone: str) -> pd.DataFrame:
    return records[(records["task"] == task) & (records["backbone"] == backbone)]


def test_a_transformer_and_a_convnet(tmp_path: Path, data: Path) -> None:
    records = run(tmp_path, ["mini-fs", "mini-resnet"], *INSIDE, data=data, layers="1-2")
    assert records["analysis"].all()
    assert records["partial"].all()
    ratios = of(records, "residuals", "mini-fs")
    ratios = ratios[ratios["metric"] == "norm-ratio"]
    places = {(1, "attention"), (1, "mlp"), (2, "attention"), (2, "mlp")}
    assert set(zip(ratios["layer"], ratios["tap"], strict=True)) == places
    assert set(ratios["pooling"]) == {"cls", "patch", "all"}
    branches = of(records, "residuals", "mini-resnet")
    assert set(branches.loc[branches["layer"] > 0, "tap"]) == {"branch"}
    pairs = of(records, "residual-cka", "mini-fs")
    pairs = pairs[pairs["metric"] == "CKA"]
    assert len(pairs) == 3 * 6 * 4
    assert set(pairs["other"]) == {"mini-fs"}
    # the class token that enters block 1 is the same for all images
    still = pairs["value"].isna()
    assert set(zip(pairs[still]["pooling"], pairs[still]["layer"], strict=True)) >= {("cls", 1)}
    assert (pairs["reason"] != "").tolist() == still.tolist()
    (rho,) = records.loc[(records["task"] == "locality") & (records["other_layer"] < 0)].to_dict("records")
    assert (rho["backbone"], rho["layer"], rho["tap"], rho["other"]) == ("mini-fs", 1, "heads", "mini-resnet")
    assert -1 <= rho["value"] <= 1
    key = "locality.imagenet.standard.npz"
    with np.load(tmp_path / "out" / "arrays" / "mini-fs--mini-resnet" / key) as arrays:
        assert arrays["head_cka"].shape == (3, 5)
        assert (np.diff(arrays["distance"]) > 0).all()
    again = run_from_store(tmp_path, ["mini-fs", "mini-resnet"], *INSIDE, data=data, layers="1-2")
    assert again["value"].equals(records["value"])
    (tmp_path / "out" / "arrays" / "mini-fs--mini-resnet" / key).unlink()
    run_from_store(
        tmp_path, ["mini-fs", "mini-resnet"], "locality", data=data, layers="1-2"
    )  # what passes left behind is enough
    assert (tmp_path / "out" / "arrays" / "mini-fs--mini-resnet" / key).exists()


def test_heads_are_not_compared_with_the_random_floor(tmp_path: Path, data: Path) -> None:
    records = run(tmp_path, ["mini-fs", "mini-resnet"], "locality", "cka", data=data, layers="1", floor=True)
    assert set(of(records, "locality", "mini-fs")["other"]) == {"mini-resnet"}
    assert set(records.loc[records["task"] == "locality", "backbone"]) == {"mini-fs"}
    assert "mini-random" in set(records["backbone"])  # which CKA looks at


def test_networks_that_do_not_show_their_inside_say_so(tmp_path: Path, data: Path, own: list[str]) -> None:
    records = run(tmp_path, [*own, "mini-resnet"], *INSIDE, data=data, layers="1")
    for task in INSIDE[:2]:
        for backbone, tap in (("own-mixer", "skip"), ("own-attender", "input")):
            rows = of(records, task, backbone)
            assert rows["value"].isna().all()
            assert rows["reason"].str.contains(f"{backbone} has no .*{tap}").all(), set(rows["reason"])
    heads = of(records, "locality", "own-attender")
    assert set(heads["other"]) == {"own-mixer", "mini-resnet"}  # what has no heads stands for a ConvNet
    assert heads["value"].isna().all()
    assert heads["reason"].str.contains("own-attender has no .*heads").all(), set(heads["reason"])
    assert of(records, "residuals", "mini-resnet")["value"].notna().any()
