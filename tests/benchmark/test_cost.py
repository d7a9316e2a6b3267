"""Runs that measure cost: each device has records of its own, measured once, which no check compares."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from layerboard.benchmark.engines import choose as device
from layerboard.benchmark.engines.choose import device_name
from layerboard.benchmark.jobs import backbone_tasks, prepare
from layerboard.leaderboards.exchange.check import check_pages
from layerboard.leaderboards.exchange.merge import merge_outputs
from layerboard.leaderboards.records.checksum import write_checked
from layerboard.leaderboards.records.record import read_frame
from layerboard.tasks.analyses.cost import CostConfig, CostTask
from layerboard.tasks.framework import registry
from layerboard.tasks.framework.registry import TASKS
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from tests.benchmark.conftest import BACKBONES
from tests.benchmark.runs import Cli, Tally, run, run_from_store

RULE = CostConfig(
    warm_up=0, rounds=1, single_seconds=0.0, most_rounds=1, gain=1.03, images=1, seconds=100.0, visits=2
)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = classmethod(lambda cls, protocol, data, row: cls(None, RULE, row=row))
    monkeypatch.setattr(CostTask, "by", quick)


def measure(place: Path, *backbones: str, **options: object) -> tuple[Tally, pd.DataFrame]:
    with Tally().watching() as tally:
        records = run(place, backbones or BACKBONES, "cost", **options)
    return tally, records[records["task"] == "cost"]


def test_costs_are_measured_once_and_have_a_page(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backbone_tasks, "KEPT_WEIGHTS", find(["mini-resnet"])[0].parameters)
    tally, records = measure(tmp_path, data=data, pages=True)
    # visited in turn; all but the smallest leave memory until their next visit
    assert tally.loads == [*BACKBONES, *(name for name in BACKBONES if name != "mini-resnet")]
    assert set(records["dataset"]) == {device_name(torch.device("cpu"))}
    assert records["analysis"].all()
    assert "thread" in records["dataset"].iloc[0]
    layers = records[(records["backbone"] == "mini-fs") & (records["metric"] == "ms")]
    times = layers.sort_values("layer")["value"]
    assert list(layers["layer"]) == [*range(1, 13), 12]
    assert (np.diff(times) >= 0).all()
    whole = records[records["layer"] == -1].pivot_table(index="backbone", columns="metric", values="value")
    assert whole["parameters"].to_dict() == {name: find([name])[0].parameters for name in BACKBONES}
    assert (whole["images-per-second"] > 0).all()
    empty = records[records["value"].isna()]
    assert set(empty["metric"]) == {"largest-batch"}
    pages = {path.name for path in (tmp_path / "out" / "tables").glob("[!.]*")}
    assert pages == {"standard.cost.csv", "standard.cost.md"}
    page = (tmp_path / "out" / "tables" / "standard.cost.md").read_text()
    assert "| mini-fs     |" in page
    assert "1.37M" in page
    assert "409K" in page
    again, same = measure(tmp_path, data=data)
    assert again.loads == []
    assert same["value"].tolist() == pytest.approx(records["value"].tolist(), nan_ok=True)
    again, other = measure(tmp_path, "mini-resnet", data=data, again=True)
    assert again.loads == ["mini-resnet"]
    newer = other["value"].fillna(0).ne(records["value"].fillna(0).to_numpy())
    assert set(other.loc[newer, "backbone"]) == {"mini-resnet"}
    with pytest.raises(InputError, match="again= measures costs again, but cost is not among the tasks"):
        run(tmp_path, ["mini-resnet"], "knn", data=data, again=True)


def test_costs_are_measured_at_the_sizes_that_tasks_show(tmp_path: Path, data: Path) -> None:
    """In the run that shows them or a later one; a run of fewer tasks measures nothing again."""
    place, other = tmp_path / "first", tmp_path / "second"
    scored = run(place, ["mini-fs"], "davis", "knn", data=data)
    shown = scored[scored["backbone"] == "mini-fs"].groupby("task")["view_size"].unique()
    (davis,), (own,) = shown["davis"], shown["knn"]
    width, height = map(int, davis.split(" x "))
    assert (own, min(width, height) > 100) == ("64 x 64", True)
    tally, records = measure(place, "mini-fs", data=data)
    assert tally.loads == ["mini-fs"]
    at = records[records["metric"] == "ms"].groupby("pooling")["value"].max()
    assert {*at.index} == {own, davis}
    tokens = records[(records["metric"] == "tokens") & (records["layer"] == 12)].set_index("pooling")["value"]
    cells = width * height // 64
    assert tokens[davis].tolist() == [cells, cells]  # the last block, and the layer after it
    gflops = records[records["metric"] == "gflops"].groupby("pooling")["value"].max()
    assert gflops[davis] > 4 * gflops[own]
    for tasks in (["cost"], ["knn", "cost"]):
        run_from_store(place, ["mini-fs"], *tasks, data=data)
    run(other, ["mini-fs"], "cost", data=data)
    run(other, ["mini-fs"], "knn", "davis", "cost", data=data, cache=place / "cache")  # a new size
    (path,) = (other / "out" / "records").rglob("cost*.parquet")
    assert {*read_frame(path)["pooling"]} == {own, davis}


def test_where_costs_alone_were_measured_they_are_the_answer(tmp_path: Path, data: Path, cli: Cli) -> None:
    options = ("--data", data, "-b", "mini-resnet", "-t", "cost", "--workers", "1")
    ended = cli("run", *options, "-o", tmp_path / "out", "--cache", tmp_path / "cache")
    assert ended.code == 0
    assert "latency, ms" in ended.out
    assert "409K" in ended.out
    assert "standard.cost.md has every layer" in ended.out
    (suite,) = json.loads(cli("show", "-o", tmp_path / "out", "--json").out)
    assert suite["answers"][0]["parameters"] == find(["mini-resnet"])[0].parameters


def test_another_device_or_size_is_measured_again(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure(tmp_path, "mini-resnet", data=data)
    tally, records = measure(tmp_path, "mini-resnet", data=data, input_size=96)
    assert tally.loads == ["mini-resnet@96px"]
    assert set(records["input_size"]) == {64, 96}
    monkeypatch.setattr(prepare, "device_name", lambda device: "a card / of another maker")
    tally, records = measure(tmp_path, "mini-resnet", data=data, input_size=96, pages=True)
    assert tally.loads == ["mini-resnet@96px"]
    assert len(set(records["dataset"])) == 2
    page = (tmp_path / "out" / "tables" / "standard.cost.md").read_text()
    assert page.count("## On ") == 2


def test_without_any_data_costs_are_measured_only_if_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    _, records = measure(tmp_path / "first", "mini-resnet", data=tmp_path / "empty")
    assert len(records)
    monkeypatch.setattr(registry, "TASKS", TASKS)  # with cost among those that are run by default
    with pytest.raises(InputError, match="there is nothing to run"):
        run(tmp_path / "second", ["mini-resnet"], data=tmp_path / "empty")


def test_times_are_compared_by_no_check_and_no_merge(data: Path, tmp_path: Path) -> None:
    place, other = tmp_path / "first", tmp_path / "second"
    _, records = measure(place, "mini-resnet", data=data)
    measure(other, "mini-resnet", data=data)
    assert check_pages(records, tmp_path) == []
    assert merge_outputs([place / "out", other / "out"], tmp_path / "merged") == 1
    (path,) = (other / "out" / "records").rglob("cost*.parquet")
    frame = read_frame(path)
    frame.loc[frame["metric"] == "parameters", "value"] *= 2
    write_checked(frame, path)
    with pytest.raises(InputError, match="two different results: parameters of layer"):
        merge_outputs([place / "out", other / "out"], tmp_path / "refused")


def test_a_processor_is_called_as_the_system_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told = "processor : 0\nmodel name\t: Maker(R) Fast(TM) CPU   @ 2.0GHz\n"
    monkeypatch.setattr(device.Path, "read_text", lambda *_, **__: told)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    assert device_name(torch.device("cpu")) == "Maker Fast CPU @ 2.0GHz, 3 threads"

    def gone(*_: object, **__: object) -> str:
        raise OSError

    monkeypatch.setattr(device.Path, "read_text", gone)
    assert device_name(torch.device("cpu")).endswith(", 3 threads")
