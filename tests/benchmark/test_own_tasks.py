"""Tasks and analyses outside the registry run by their Python name, as the documentation shows them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from layerboard.zoo.errors import InputError
from tests.benchmark.runs import Cli, Tally, run

BOTH = ("my_tasks:NEAREST_MEAN", "my_tasks:LOOKING_BACK")


def test_the_task_and_the_analysis_of_the_page_run_beside_those_of_the_registry(
    my_tasks: Path, data: Path
) -> None:
    with Tally().watching() as tally:
        records = run(
            my_tasks, ["mini-fs", "mini-resnet"], "knn", *BOTH, data=data, layers="1,12,final", pages=True
        )
    assert set(tally.images.values()) == {1}  # one forward served vectors and attention
    assert set(records["task"]) == {"knn", "nearest-mean", "looking-back"}

    scores = records[records["task"] == "nearest-mean"]
    assert set(scores["pooling"]) == {"cls", "mean"}
    assert scores.loc[scores["n"] > 1, "ci_low"].notna().all()

    described = records[records["task"] == "looking-back"]
    assert described["analysis"].all()
    assert not scores["analysis"].any()
    fs = described[described["backbone"] == "mini-fs"]
    assert set(fs["tap"]) == {"attention"}
    assert set(fs["layer"]) == {1, 12}
    assert sorted(set(fs["head"])) == [-1, 0, 1, 2]
    heads = fs[fs["head"] >= 0].groupby("layer")["value"].mean()
    whole = fs[fs["head"] < 0].set_index("layer")["value"]
    pd.testing.assert_series_equal(heads, whole, check_names=False)
    (empty,) = described[described["backbone"] == "mini-resnet"]["reason"].unique()
    assert empty == "mini-resnet has no attention."

    # an analysis has arrays and a page of its own, and is no column
    out = my_tasks / "out"
    with np.load(out / "arrays" / "mini-fs" / "looking-back.imagenet.standard.npz") as arrays:
        share = arrays["share"]
    assert share.shape == (12, 2, 3)
    assert ((share >= 0) & (share <= 1)).all()
    board = (out / "tables" / "standard.md").read_text(encoding="utf-8")
    inside = (out / "tables" / "standard.inside.md").read_text(encoding="utf-8")
    assert "nearest-mean top-1" in board
    assert "attention-to-first" not in board
    assert "attention-to-first" in inside


def test_names_that_are_no_tasks_are_one_sentence(my_tasks: Path, data: Path) -> None:
    module = my_tasks / "my_tasks.py"
    module.write_text(module.read_text() + "\nKNN = replace_name(NEAREST_MEAN)\n".replace("KNN", "OTHER"))
    for name, words in {
        "nowhere:TASK": "there is no module nowhere",
        "json:dumps": "expected a TaskEntry with its code",
        "json:nothing": "found NoneType",
        "my_tasks:OTHER": "my_tasks cannot be imported: NameError",
    }.items():
        with pytest.raises(InputError, match=words):
            run(my_tasks, ["mini-fs"], name, data=data)


def test_a_task_of_ones_own_may_not_take_a_name_of_the_registry(my_tasks: Path, data: Path) -> None:
    module = my_tasks / "my_tasks.py"
    module.write_text(module.read_text().replace('name="nearest-mean"', 'name="knn"'))
    with pytest.raises(InputError, match="a task of the name 'knn', which the registry has"):
        run(my_tasks, ["mini-fs"], BOTH[0], data=data)


@pytest.mark.slow
def test_other_processes_find_the_tasks_again(my_tasks: Path, data: Path, cli: Cli) -> None:
    """Two small backbones run side by side, in processes that import the module themselves."""
    said = cli(
        *("run", "--backbones", "mini-fs", "mini-dino", "--tasks", *BOTH, "--data", data, "--layers", "1"),
        *("--workers", 2, "--no-floor", "--output", my_tasks / "out", "--cache", my_tasks / "cache"),
    )
    assert said.code == 0, said.err
    found = {path.parent.name for path in (my_tasks / "out" / "records").rglob("looking-back*.parquet")}
    assert found == {"mini-fs", "mini-dino"}
