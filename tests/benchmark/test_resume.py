"""Killed runs go on where they stopped, and two runs at once do each other no harm."""

import json
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from layerboard.leaderboards.records.record import read_records
from layerboard.zoo.atomic import PARTIAL
from tests.benchmark.conftest import BACKBONES, Whole
from tests.benchmark.runs import QUICK, Tally, assert_same_records, environment, files, run, shards

pytestmark = pytest.mark.slow

SHARDS = 13
"""Files that a backbone's passes leave: vectors of six sources, seven shards of dense tasks."""

DEATHS = {"in the first pass": 2, "between two videos": 9, "while scoring": SHARDS + 6}
KILLS = 10


@dataclass(frozen=True)
class Killed:
    """Where a run was killed, and how many images its backbones had been shown."""

    place: Path
    shown: int


def _job(place: Path, data: Path, shown: Path, dies: int = 0) -> tuple[list[str], int, str]:
    options = ("--layers", QUICK, "--workers", "1", "--no-floor", "--data", str(data))
    folders = ("--output", str(place / "out"), "--cache", str(place / "cache"))
    return ["run", "--backbones", *BACKBONES, *options, *folders], dies, str(shown)


@pytest.fixture(scope="module")
def driven(whole: Whole, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that were killed, each in its folder, one that two runs filled at once, and one killed ten times.

    The ten kills come before any of the next four files, so that all kinds of work are cut.
    """
    base, draw = tmp_path_factory.mktemp("driven"), random.Random(0)
    for name in (*DEATHS, "twice", "often"):
        (base / name / "cache").mkdir(parents=True)
    together = [[_job(base / name, data, base / f"{name}.shown", dies)] for name, dies in DEATHS.items()]
    together.append([_job(base / "twice", data, base / f"{number}.shown") for number in (1, 2)])
    often = [draw.randint(1, 4) for _ in range(KILLS)]
    together += [[_job(base / "often", data, base / "often.shown", dies)] for dies in (*often, 0)]
    jobs = base / "jobs.json"
    jobs.write_text(json.dumps(together))
    found = subprocess.run(
        [sys.executable, "-m", "tests.benchmark.driver", str(jobs)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    ends = [*([-9] for _ in DEATHS), [0, 0], *([-9] for _ in often), [0]]
    assert json.loads(found.stdout.splitlines()[-1]) == ends, found.stderr
    for name in DEATHS:  # a later run removes them
        left = list((base / name / "cache").rglob(".partial-*"))
        (base / f"{name}.left").write_text(str(len(left)))
    return base


@pytest.mark.parametrize("name", DEATHS)
def test_a_killed_run_goes_on_and_redoes_at_most_one_shard(
    driven: Path, data: Path, whole: Whole, name: str
) -> None:
    place = driven / name
    kept = shards(place / "cache")
    before = files(place / "cache" / "features", place / "out")
    with Tally().watching() as tally:
        records = run(place, BACKBONES, data=data)
    assert_same_records(records, whole.records)
    after = files(place / "cache" / "features", place / "out" / "records")
    assert all(after[path] == before[path] for path in before if path in after)
    assert kept <= shards(place / "cache")
    shown = int((driven / f"{name}.shown").read_text().split()[-1])
    redone = shown + tally.rows.total() - whole.tally.rows.total()
    largest = max(whole.tally.rows.values())
    assert 0 <= redone <= largest
    assert {path.name for path in shards(place / "cache")} == {
        path.name for path in shards(whole.place / "cache")
    }


def test_a_kill_leaves_a_partial_file_that_does_not_count(driven: Path) -> None:
    assert (driven / "between two videos.left").read_text() == "1"


def test_a_run_that_is_killed_ten_times_ends_as_one_that_nothing_disturbed(
    driven: Path, whole: Whole
) -> None:
    assert_same_records(read_records([driven / "often" / "out" / "records"]), whole.records)
    assert len(shards(driven / "often" / "cache")) == len(shards(whole.place / "cache"))


def test_two_runs_at_once_give_what_one_gives(driven: Path, whole: Whole) -> None:
    assert_same_records(read_records([driven / "twice" / "out" / "records"]), whole.records)
    assert len(shards(driven / "twice" / "cache")) == len(shards(whole.place / "cache"))
    assert not list((driven / "twice").rglob(f"{PARTIAL}*"))
