"""Several devices: which there are, what is said of wrong ones, and that two give what one gives."""

import os
import sys
import threading
from pathlib import Path

import pandas as pd
import pytest
import torch

import layerboard
from layerboard.benchmark.engines.base import LocalEngine, Worker, WorkerDiedError, WorkerSlot
from layerboard.benchmark.engines.choose import find_devices, find_engine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.jobs import pieces
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.runs import comparable, run
from tests.zoo.own.module.networks import SIZE, Vit
from workshop.list_queue import ListQueue

WRONG: tuple[tuple[dict[str, object], str], ...] = (
    ({"device": "all"}, "--device all takes every GPU, and this machine has none; leave it out"),
    ({"device": "cpu,all"}, "--device takes all alone, or names such as cuda:0,cuda:1; found 'cpu,all'"),
    ({"device": "cpu,gpu"}, "there is no device 'gpu'; expected auto, cpu, cuda or cuda:N"),
    ({"device": "cpu,cuda:7"}, "device 'cuda:7' is not there: this machine has 0 CUDA devices"),
    ({"device": "cpu,cpu", "engine": "local"}, "--engine local runs on one device; leave it out"),
    ({"device": "cpu,cpu", "engine": "ray"}, "--engine ray takes every GPU of its cluster; leave out"),
)


@pytest.fixture
def cards(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with three GPUs."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 3)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)


@pytest.mark.parametrize(("options", "text"), WRONG)
def test_wrong_devices_are_one_sentence(
    options: dict[str, object], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    with pytest.raises(InputError) as caught:
        find_devices(Request("mini-fs", **options))  # type: ignore[arg-type]
    assert text in str(caught.value)


@pytest.mark.usefixtures("cards")
def test_gpus_by_name() -> None:
    def found(*names: str) -> list[str]:
        return [str(one) for one in find_devices(Request(device=names))]

    assert found("all") == ["cuda:0", "cuda:1", "cuda:2"]
    assert found("cuda:2,cuda") == ["cuda:2", "cuda:0"]
    assert [str(one) for one in find_devices(Request())] == ["cuda"]
    for wrong in ("cuda:0,cuda", "cuda:0,cpu"):
        with pytest.raises(InputError, match="--device takes"):
            found(wrong)


def test_each_device_has_a_process_with_its_share_of_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    specs = find(BACKBONES)

    def places(workers: int, *devices: str, engine: str = "auto") -> list[WorkerSlot]:
        request = Request(device=devices, workers=workers, engine=engine)  # type: ignore[arg-type]
        found = find_engine(specs, request, [torch.device(name) for name in devices])
        assert isinstance(found, ProcessEngine)
        return found._slots

    assert places(16, "cuda:0", "cuda:1") == [WorkerSlot("cuda:0", 4), WorkerSlot("cuda:1", 4)]
    assert places(1, "cpu", "cpu") == [WorkerSlot("cpu", 1)] * 2
    assert places(3, "cpu", engine="processes") == [WorkerSlot()] * 3
    assert places(3, "cuda:1", engine="processes") == [WorkerSlot("cuda:1", 3)]
    local = find_engine(specs, Request(engine="local", workers=2), [torch.device("cpu")])
    assert isinstance(local, LocalEngine)


def test_a_network_of_this_process_is_not_sent_elsewhere() -> None:
    own = layerboard.from_module(Vit(), image_size=SIZE, verbose=False)
    device = torch.device("cpu")
    for request, devices in ((Request(engine="processes"), [device]), (Request(), [device, device])):
        with pytest.raises(InputError, match="is a network of this process and cannot run in another"):
            find_engine([own.spec], request, devices)


def test_ray_that_is_not_installed_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "layerboard.benchmark.engines.ray", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="--engine ray needs Ray; install it with pip install"):
        find_devices(Request(engine="ray"))


class NeverReady(Worker[str, str]):
    """Fails when it is ended, as an actor does that has not started yet."""

    slot = WorkerSlot()

    def __init__(self) -> None:
        self.asked, self.ended = threading.Event(), threading.Event()

    def ready(self) -> bool:
        self.asked.set()
        assert self.ended.wait(60)
        raise WorkerDiedError("no worker starts")

    def do(self, job: str) -> str:
        raise AssertionError(job)

    def end(self) -> None:
        self.ended.set()


def test_a_worker_that_was_still_starting_when_all_was_done_does_not_end_the_run() -> None:
    starting = NeverReady()

    class Working(Worker[str, str]):
        slot = WorkerSlot()

        def do(self, job: str) -> str:
            assert starting.asked.wait(60)
            return job.upper()

        def end(self) -> None:
            pass

    queue: ListQueue[str, str] = ListQueue(["a"])
    queue.dispatch([Working(), starting])
    assert queue.results == {0: "A"}
    starting.end()
    with pytest.raises(WorkerDiedError, match="no worker starts"):
        ListQueue(["b"]).dispatch([starting])


@pytest.mark.slow
def test_several_devices_share_datasets_and_give_the_same_bytes(
    tmp_path: Path, whole: Whole, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "LEAST_SECONDS", 0.0)
    tasks = ["knn", "davis", "spair", "cka"]
    records = run(tmp_path, BACKBONES, *tasks, data=data, device="cpu,cpu,cpu")
    expected = whole.records.query("task in @tasks")
    pd.testing.assert_frame_equal(comparable(records), comparable(expected), check_exact=True)
