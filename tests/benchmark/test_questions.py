"""Runs of what a backbone is asked without a pass: fields by gradients, and its weights."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.tasks.analyses.receptive_field import ReceptiveFieldTask
from tests.benchmark.conftest import BACKBONES
from tests.benchmark.runs import Tally, assert_same_records, run

TASKS = ("receptive-field", "inspect")


@pytest.fixture(autouse=True)
def _one_channel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReceptiveFieldTask, "channels", lambda self, width: [0])


def ask(place: Path, data: Path, **options: object) -> tuple[Tally, pd.DataFrame]:
    with Tally().watching() as tally:
        records = run(place, BACKBONES, *TASKS, data=data, layers="1", **options)
    return tally, records


def test_questions_are_answered_once_and_not_again(data: Path, tmp_path: Path) -> None:
    tally, records = ask(tmp_path, data)
    assert records.attrs["failures"] == []
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
    _, records = ask(tmp_path / "second", own_data)
    failures = records.attrs["failures"]
    assert len(failures) == len(BACKBONES)
    assert all("receptive-field" in line and "images that can be decoded" in line for line in failures)
