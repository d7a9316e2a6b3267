"""Engines, batch sizes, threads and the order of files do not change scores."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
import torch

from layerboard.benchmark.engines.base import LocalEngine, WorkerDiedError
from layerboard.benchmark.engines.choose import suited_engine
from layerboard.benchmark.engines.processes import ProcessEngine
from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.doubles import SPEC
from tests.benchmark.engines.light import Unreadable, double, number
from tests.benchmark.runs import QUICK, assert_same_records, environment
from tests.zoo.reduced import reduce
from workshop.list_queue import results_in_order

SCRIPT = """
import json, sys
import layerboard
print("once")
names, data, out, cache = json.loads(sys.argv[1])
options = dict(workers=2, layers="{layers}", floor=False)
found = layerboard.run(names, {tasks}, data=data, output=out, cache=cache, **options)
found.frame.to_parquet(out + "/all.parquet")
print(json.dumps(found.failures))
"""


@pytest.mark.slow
def test_processes_give_what_one_process_gives_also_to_a_script_without_a_guard(
    whole: Whole, data: Path, tmp_path: Path
) -> None:
    broken = reduce(find(["dino-b16"])[0], tmp_path / "broken").folder
    (broken / "model.safetensors").write_bytes(b"no weights")
    place, tasks = tmp_path / "place", ["knn", "davis", "cka"]
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(layers=QUICK, tasks=tasks))
    given = json.dumps([[*BACKBONES, str(broken)], str(data), str(place / "out"), str(place / "cache")])
    found = subprocess.run(
        [sys.executable, str(script), given],
        capture_output=True,
        text=True,
        env={**environment(), "PYTHONPATH": str(Path(__file__).parents[3])},
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    once, failures = found.stdout.splitlines()
    assert once == "once"
    assert_same_records(pd.read_parquet(place / "out" / "all.parquet"), whole.records.query("task in @tasks"))
    (sentence,) = json.loads(failures)
    assert "is not a readable safetensors file" in sentence


def test_a_job_that_cannot_be_read_elsewhere_says_why() -> None:
    with pytest.raises(InputError, match="no folder of data here"):
        results_in_order(ProcessEngine(1, threads=None), double, [Unreadable()], Silent())  # type: ignore[list-item]


class Heard(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        super().__init__(say=self.lines.append)


@pytest.mark.slow  # a process of its own imports torch
def test_a_process_reports_and_its_death_is_a_sentence() -> None:
    assert results_in_order(LocalEngine(), double, [1, 2], Silent()) == [2, 4]
    engine, heard = ProcessEngine(1, threads=1), Heard()
    with pytest.raises(WorkerDiedError, match="a process of the run was ended from outside"):
        results_in_order(engine, double, [1, 3], heard)
    assert "said 1" in heard.lines


def interrupt(line: str) -> None:
    """Kill the process that says its number, and interrupt this one, as Ctrl-C would."""
    os.kill(int(line), signal.SIGKILL)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def test_an_interrupt_ends_a_run_whose_process_was_killed() -> None:
    begin = time.monotonic()
    with pytest.raises((KeyboardInterrupt, WorkerDiedError)):
        results_in_order(ProcessEngine(1, threads=None), number, [600.0], Silent(say=interrupt))
    assert time.monotonic() - begin < 300


def test_only_small_backbones_on_a_processor_run_side_by_side() -> None:
    def chosen(side: int, count: int, workers: int, device: str) -> type:
        specs = [replace(SPEC, input_size=side)] * count
        return type(suited_engine(specs, Request(workers=workers), [torch.device(device)]))

    assert chosen(64, 2, 2, "cpu") is ProcessEngine
    assert chosen(224, 2, 2, "cpu") is LocalEngine
    assert chosen(64, 1, 2, "cpu") is LocalEngine
    assert chosen(64, 2, 1, "cpu") is LocalEngine
    assert chosen(64, 2, 2, "cuda") is LocalEngine


def test_without_shared_memory_a_sentence_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("layerboard.benchmark.engines.processes._CONTEXT.Queue", refused)
    with pytest.raises(InputError, match=r"/dev/shm cannot be used .Permission denied.; .* --workers 1"):
        results_in_order(ProcessEngine(2, None), print, [1, 2], Silent())
