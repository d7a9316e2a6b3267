"""Engines, batch sizes, threads and the order of files do not change scores."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from benchmark.engines.engine import LocalEngine, ProcessEngine, WorkerDiedError
from benchmark.engines.progress import Reporter, Silent
from benchmark.jobs.run import choose_engine
from benchmark.request import Request
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.runs import QUICK, assert_same_records, environment
from tests.zoo.reduced import reduce
from zoo.registry import find

SCRIPT = """
import json, sys
import benchmark
print("once")
names, data, out, cache = json.loads(sys.argv[1])
options = dict(workers=2, layers="{layers}", floor=False)
frame = benchmark.run(names, {tasks}, data=data, output=out, cache=cache, **options)
frame.to_parquet(out + "/all.parquet")
print(json.dumps(frame.attrs["failures"]))
"""


def test_processes_give_what_one_process_gives_also_to_a_script_without_a_guard(
    new_place: Callable[[], Path], whole: Whole, data: Path, tmp_path: Path
) -> None:
    broken = reduce(find(["dino-b16"])[0], tmp_path / "broken").folder
    (broken / "model.safetensors").write_bytes(b"no weights")
    place, tasks = new_place(), ["knn", "davis", "cka"]
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
    sentences = json.loads(failures)
    assert len(sentences) == 3
    assert all("is not a readable safetensors file" in sentence for sentence in sentences)


def _double(job: int, report: Reporter) -> int:
    with report.bar(f"job {job}", 1, "jobs") as advance:
        advance(1)
    report.say(f"said {job}")
    if job > 2:
        time.sleep(0.3)  # until what was said is sent
        os._exit(3)
    return 2 * job


class Heard(Silent):
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def test_a_process_reports_and_its_death_is_a_sentence() -> None:
    assert LocalEngine().map(_double, [1, 2], Silent()) == [2, 4]
    engine, heard = ProcessEngine(1, threads=1), Heard()
    with pytest.raises(WorkerDiedError, match="a process of the run was ended from outside"):
        engine.map(_double, [1, 3], heard)
    assert "said 1" in heard.lines


def test_only_small_backbones_on_a_processor_run_side_by_side(tmp_path: Path) -> None:
    from types import SimpleNamespace as Fake

    import torch

    def chosen(side: int, count: int, workers: int, device: str) -> type:
        runs = [Fake(plan=Fake(spec=Fake(input_size=side)))] * count
        request = Request(output=tmp_path, cache=tmp_path, workers=workers)
        return type(choose_engine(runs, request, torch.device(device)))  # type: ignore[arg-type]

    assert chosen(64, 2, 2, "cpu") is ProcessEngine
    assert chosen(224, 2, 2, "cpu") is LocalEngine
    assert chosen(64, 1, 2, "cpu") is LocalEngine
    assert chosen(64, 2, 1, "cpu") is LocalEngine
    assert chosen(64, 2, 2, "cuda") is LocalEngine
