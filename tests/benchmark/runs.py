"""Small runs through the public entry points, and what is watched of them."""

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow.parquet import FileMetaData
from torch import Tensor

import layerboard
from layerboard.benchmark.commands.app import main
from layerboard.benchmark.commands.result import Result
from layerboard.benchmark.engines.log import LOG
from layerboard.benchmark.forms.campaign import RUN_FILE
from layerboard.benchmark.jobs import passes
from layerboard.benchmark.passes.loading import Rendered
from layerboard.benchmark.passes.one_pass import run_pass
from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.style import Spec
from layerboard.leaderboards.records.fields import read_table
from layerboard.tasks.datasets.base import Sample
from layerboard.tasks.framework import registry
from layerboard.tasks.framework.base import digest
from layerboard.tasks.framework.registry import COST
from layerboard.zoo.features import Visitor
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.spec import BackboneSpec, Layer
from layerboard.zoo.view.views import View
from tests import fakes

QUICK = "1,final"
"""Layers that keep a run short."""

TASKS = ("knn", "retrieval", "davis", "spair", "cluster-image", "cluster-object", "cluster-part", "cka")

ROLES = ("classification", "retrieval", "instances", "videos", "keypoints", "scenes", "defects")
REGIONS = ("objects", "parts", "masks")
PUBLIC = tuple(task.name for task in registry.TASKS if task.role in (*ROLES, *REGIONS, registry.NO_DATA))
"""Tasks that the datasets of `write_data` serve."""

VOLATILE = ["seconds", "date", "fingerprint"]
KEY = ["backbone", "task", "dataset", "layer", "tap", "pooling", "metric"]
KEY += ["other", "other_layer", "other_tap"]


def leave_cost_out(patch: pytest.MonkeyPatch) -> None:
    """No run measures cost where no task is named: times are never equal, and take time."""
    tasks = (replace(task, default=task.default and task.name != COST) for task in registry.TASKS)
    patch.setattr(registry, "TASKS", tuple(tasks))


def keep_backbones(patch: pytest.MonkeyPatch) -> None:
    """Runs share the networks that come with the package: to load one takes longer than to show it images.

    Other commands, which may cut theirs, get copies.
    """
    load, kept = passes.load_backbone, dict[tuple[BackboneSpec, torch.device], Backbone]()

    def loading(spec: BackboneSpec, *, device: torch.device, cache_dir: Path) -> Backbone:
        if not spec.origin.supply:
            return load(spec, device=device, cache_dir=cache_dir)
        key = (spec, device)
        if key not in kept or kept[key].compiled:
            kept[key] = load(spec, device=device, cache_dir=cache_dir)
        return kept[key]

    def copying(spec: BackboneSpec, *, device: torch.device, cache_dir: Path) -> Backbone:
        found = loading(spec, device=device, cache_dir=cache_dir)
        return deepcopy(found) if spec.origin.supply else found

    patch.setattr(passes, "load_backbone", loading)
    patch.setattr("layerboard.zoo.load.backbone.load_backbone", copying)


def keep_tables(patch: pytest.MonkeyPatch) -> None:
    """Files of records with the same bytes are unpacked once: commands read the same runs again and again."""
    kept = dict[bytes, pa.Table]()

    def reading(content: bytes, facts: FileMetaData, kinds: Mapping[str, type]) -> pa.Table:
        if content not in kept:
            kept[content] = read_table(content, facts, kinds)
        return kept[content]

    patch.setattr("layerboard.leaderboards.records.record.read_table", reading)


def leave_drawing_out(patch: pytest.MonkeyPatch) -> None:
    """Charts are checked and not drawn, and pages have no script, which takes longer than all their text.

    What is drawn of a chart stands in `tests.leaderboards.charts`.
    """

    def checking(spec: Spec, ending: str = "svg", **options: object) -> Any:
        text = json.dumps(engine.written(spec), allow_nan=False)
        drawn = f'<svg xmlns="http://www.w3.org/2000/svg"><desc>{digest(text, options)}</desc></svg>'
        return drawn if ending == "svg" else drawn.encode()

    patch.setattr(engine, "render_chart", checking)
    patch.setattr("layerboard.leaderboards.report.page.vega_script", str)


def add_row(patch: pytest.MonkeyPatch, module: ModuleType, name: str, row: object) -> None:
    """Add a row to a table of the product, as all who have imported it see it."""
    first = getattr(module, name)[0]
    for other in list(sys.modules.values()):
        rows = getattr(other, "__dict__", {}).get(name)
        if isinstance(rows, tuple) and rows and rows[0] == first:
            patch.setattr(other, name, (*rows, row))


def leave_pages_out(patch: pytest.MonkeyPatch) -> None:
    """No run makes pages or answers of its records, which takes longer than all else of a small run."""
    patch.setattr("layerboard.benchmark.api.write_changed", lambda *_: ([], False))
    nothing = Result(title="", frame=pd.DataFrame())
    patch.setattr("layerboard.benchmark.commands.run.answers_to", lambda *_: nothing)


def write_data(root: Path) -> Path:
    """All datasets, tiny."""
    fakes.write_fake_imagenet(root)
    fakes.write_fake_revisited(root)
    fakes.write_fake_revisited(root, "rparis6k", seed=1)
    fakes.write_fake_davis(root)
    fakes.write_fake_spair(root)
    fakes.write_fake_coco(root)
    fakes.write_fake_partimagenet(root, images=2)
    fakes.write_fake_voc(root)
    fakes.write_fake_defects(root / "mvtec_anomaly_detection")
    fakes.write_fake_cub(root)
    return root


def run(
    place: Path,
    backbones: Collection[str],
    *tasks: str,
    pages: bool = False,
    fails: bool = False,
    **options: Any,
) -> pd.DataFrame:
    """Records of `layerboard.run` with ``place/out`` and, unless told otherwise, ``place/cache``.

    Unless the run ``fails``, nothing went wrong; what did is in ``attrs["failures"]``. Pages are written only
    where a test reads them.
    """
    settings = {"workers": 1, "layers": QUICK, "floor": False, "cache": place / "cache"} | options
    with pytest.MonkeyPatch.context() as patch:
        if not pages:
            leave_pages_out(patch)
        named = [list(tasks)] if tasks else []  # an empty list is an error
        found = layerboard.run(list(backbones), *named, output=place / "out", **settings)
    assert fails or not found.failures, found.failures
    if len(found.frame):
        assert_sound(found.frame)
    found.frame.attrs["failures"] = list(found.failures)
    return found.frame


def assert_sound(records: pd.DataFrame) -> None:
    """Every number is there or says why not, lies in its interval's order, and no score is beyond 100."""
    assert (records["value"].notna() == (records["reason"] == "")).all()
    assert not (records["ci_low"] > records["ci_high"]).any()
    assert not (records.loc[records["primary"] & ~records["analysis"], "value"] > 100 + 1e-9).any()


def comparable(frame: pd.DataFrame, *, numbers_only: bool = False) -> pd.DataFrame:
    """Records in a fixed order without what differs from run to run."""
    left_out = [*VOLATILE] if numbers_only else VOLATILE[:2]
    return frame.drop(columns=left_out).sort_values(KEY).reset_index(drop=True)


def assert_same_records(found: pd.DataFrame, expected: pd.DataFrame, **options: Any) -> None:
    """Equal in all columns but times and dates; values to float noise."""
    pd.testing.assert_frame_equal(
        comparable(found, **options), comparable(expected, **options), check_exact=False, rtol=0, atol=1e-4
    )


def files(*folders: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of every file below some folders but those that say of each run what it was."""
    found = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return {
        path: (path.stat().st_size, path.stat().st_mtime_ns)
        for path in found
        if path.name not in (LOG, RUN_FILE)
    }


def shards(cache: Path) -> set[Path]:
    """Files of whole shards."""
    return set((cache / "features").rglob("*.safetensors"))


class _Watched:
    """A backbone that counts what it is shown."""

    def __init__(self, backbone: Backbone, tally: "Tally") -> None:
        self._backbone = backbone
        self._tally = tally

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backbone, name)

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        self._tally.rows[self._backbone.spec.name, self._tally.source] += len(pixels)
        self._tally.log()
        self._backbone.visit(pixels, visitor, layers)


class Tally:
    """Backbones that were loaded, and what went through them.

    Attributes:
        loads: Names of the backbones, in order.
        images: How often each (backbone, source, sample) was asked for in a pass, decoded or kept.
        rows: Images or tiles that each backbone was shown of each source.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.loads: list[str] = []
        self.images: Counter[tuple[str, str, str]] = Counter()
        self.rows: Counter[tuple[str, str]] = Counter()
        self.source = ""
        self._path = path

    def log(self) -> None:
        """Add the number of rows to a file, where a killed process leaves it; none is ever taken back."""
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(f"{self.rows.total()}\n")

    @contextmanager
    def watching(self):  # type: ignore[no-untyped-def]
        """Watch all that happens in this process."""
        load = passes.load_backbone

        def loading(spec: BackboneSpec, **place: Any) -> _Watched:
            self.loads.append(spec.name)
            return _Watched(load(spec, **place), self)

        def passing(source, listeners, backbone, batch_size, loader, report):  # type: ignore[no-untyped-def]
            self.source = source.name

            def counting(sample: Sample, view: View) -> Rendered:
                self.images[backbone.spec.name, source.name, sample.key] += 1
                return loader.rendering(sample, view)

            counted = replace(loader, rendering=counting)
            return run_pass(source, listeners, backbone, batch_size, counted, report)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(passes, "load_backbone", loading)
            patch.setattr(passes, "run_pass", passing)
            # the first load in a process shows the images of the fingerprint, which are of no source
            patch.setattr(passes, "require_stored_features", lambda backbone: None)
            yield self


def run_from_store(place: Path, backbones: Collection[str], *tasks: str, **options: Any) -> pd.DataFrame:
    """Records of a `run` for which no backbone is loaded and no image shown: all that it needs is stored."""
    with Tally().watching() as tally:
        records = run(place, backbones, *tasks, **options)
    assert (tally.loads, tally.rows.total()) == ([], 0)
    return records


class Said:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def error(self) -> str:
        """The one sentence of bad input."""
        lines = self.err.strip().splitlines()
        assert self.code == 2, self.err
        assert len(lines) == 1, self.err
        assert lines[0].startswith("error: "), self.err
        return lines[0]

    def lines(self, start: str) -> list[str]:
        """Lines on standard error that begin with something."""
        return [line for line in self.err.splitlines() if line.startswith(start)]


Cli = Callable[..., Said]
"""A command line, carried out in this process: what it says."""


def command(
    capsys: pytest.CaptureFixture[str], *arguments: object, program: Callable[[], None] = main
) -> Said:
    """A command line in this process."""
    capsys.readouterr()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["layerboard", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            program()
    code = stop.value.code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err + captured.out
    return Said(code if isinstance(code, int) else int(code is not None), captured.out, captured.err)


PAIR = ("mini-fs", "mini-resnet")
"""Backbones that are compared."""


def once(place: Path, task: str, **options: Any) -> tuple[pd.DataFrame, dict[str, int]]:
    """Records of a task of the user's own images, and how many images of each source a backbone was shown."""
    with Tally().watching() as tally:
        records = run(place, PAIR, **options)
    shown = {source.split("/")[1]: count for (name, source), count in tally.rows.items() if name == PAIR[0]}
    return records[records["task"] == task], shown


def answer(cli: Cli, place: Path, line: str, metric: str, *asked: object) -> str:
    """The report of the user's own images, after check, run, compare and recommend, which lead to it.

    ``line`` is how the images are understood, ``metric`` the task's with its name.
    """
    task = metric.partition(" ")[0]
    assert line in cli("check", *asked).out
    written = ("--output", place / "out")
    how = ("--backbones", *PAIR, "--layers", QUICK, "--no-floor", "--cache", place / "cache", "--workers", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("layerboard.leaderboards.writers.build.write_board", lambda *_: [])  # as the report is
        done = cli("run", *asked, *how, *written, "--tasks", task)
    assert done.code == 0
    assert line in done.err + done.out
    assert metric in cli("compare", *PAIR, *written).out
    assert f"for {task}" in cli("recommend", *written, "--tasks", task).out
    page = Path(cli("report", *written).out.strip().splitlines()[-1])
    return page.read_text(encoding="utf-8")


def environment() -> dict[str, str]:
    """Of a process that is no test process: one thread each, no network."""
    return {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
