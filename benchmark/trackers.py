"""Trackers of experiments: what is logged of a run, and how each tracker takes it."""

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.board.column import Column
from layerboard.zoo.errors import InputError, first_line
from layerboard.zoo.libraries import optional
from layerboard.zoo.spec import Variant

LAYER, TRAINING_STEP = "layer", "training step"  # horizontal axes of what is logged
PROJECT = "layerboard"  # where the user's settings name none
MOST = 500  # numbers that are sent at once
_SECRET = re.compile(r"WANDB_|MLFLOW_|DATABRICKS_|AWS_|KEY|TOKEN|SECRET|PASSW")  # in names of the environment
_LEAST = 4  # characters of a value of the environment that is left out of a sentence

Numbers = Mapping[str, float]


class Tracker(ABC):
    """A run of a tracker: the one that is active in this process, which stays open, or a new one."""

    name: ClassVar[str]

    @abstractmethod
    def log(self, numbers: Numbers, axis: str, at: int) -> None:
        """Log numbers by name at a place of an axis."""

    @abstractmethod
    def attach(self, path: Path) -> None:
        """Keep a file with the run."""

    @abstractmethod
    def close(self) -> None:
        """End the run, if it was begun here."""


class WandbTracker(Tracker):
    """A run of Weights & Biases; it keeps neither code nor facts of the machine."""

    name = "wandb"

    def __init__(self, library: Any, title: str, output: Path) -> None:  # noqa: ANN401  # untyped libraries
        self._library, self._own = library, library.run is None
        self._axes: dict[str, str] = {}
        self._run = library.run
        if self._own:
            settings = library.Settings(
                console="off",
                disable_code=True,
                disable_git=True,
                silent=True,
                x_disable_meta=True,
                x_disable_stats=True,
            )
            project = os.environ.get("WANDB_PROJECT", PROJECT)
            self._run = library.init(project=project, name=title, dir=str(output), settings=settings)

    def log(self, numbers: Numbers, axis: str, at: int) -> None:
        for name in numbers:
            if self._axes.setdefault(name, "") != axis:
                self._run.define_metric(name, step_metric=axis)
                self._axes[name] = axis
        self._run.log({axis: at, **numbers})

    def attach(self, path: Path) -> None:
        artifact = self._library.Artifact(re.sub(r"[^\w.-]+", "-", path.stem), type="report")
        artifact.add_file(str(path))
        self._run.log_artifact(artifact)

    def close(self) -> None:
        if self._own:
            self._run.finish()


class MlflowTracker(Tracker):
    """A run of MLflow."""

    name = "mlflow"

    def __init__(self, library: Any, title: str, output: Path) -> None:  # noqa: ANN401
        del output  # MLflow's own settings say where
        self._library, self._own = library, library.active_run() is None
        if self._own:
            if not {"MLFLOW_EXPERIMENT_NAME", "MLFLOW_EXPERIMENT_ID"} & {*os.environ}:
                library.set_experiment(PROJECT)
            library.start_run(run_name=title, tags={"mlflow.source.name": PROJECT})

    def log(self, numbers: Numbers, axis: str, at: int) -> None:
        del axis  # MLflow has one
        plain = [(re.sub(r"[^A-Za-z0-9_\-. :/]", "-", name), value) for name, value in numbers.items()]
        for start in range(0, len(plain), MOST):
            self._library.log_metrics(dict(plain[start : start + MOST]), step=at)

    def attach(self, path: Path) -> None:
        self._library.log_artifact(str(path), "report")

    def close(self) -> None:
        if self._own:
            self._library.end_run()


class TensorboardTracker(Tracker):
    """Event files of TensorBoard, in a new folder below the output folder."""

    name = "tensorboard"

    def __init__(self, library: Any, title: str, output: Path) -> None:  # noqa: ANN401
        del library  # torch writes the files
        from torch.utils.tensorboard import SummaryWriter

        day = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
        self._writer = SummaryWriter(str(output / "tensorboard" / f"{title}-{day}"))

    def log(self, numbers: Numbers, axis: str, at: int) -> None:
        del axis  # TensorBoard has one
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, at)

    def attach(self, path: Path) -> None:
        self._writer.add_text("report", f"{path.parent.name}/{path.name} in the output folder")

    def close(self) -> None:
        self._writer.close()


TRACKERS: Mapping[str, type[Any]] = {
    each.name: each for each in (WandbTracker, MlflowTracker, TensorboardTracker)
}


def open_tracker(name: str, output: Path) -> Tracker:
    """The active run of a tracker, or a new one; raises InputError if it is not installed or refuses."""
    library = optional(name, f"--log {name} needs {name}; install it with pip install 'layerboard[{name}]'")
    with refusals_told(name):
        output.mkdir(parents=True, exist_ok=True)
        tracker: Tracker = TRACKERS[name](library, f"layerboard-{output.absolute().name}", output)
    return tracker


@contextmanager
def refusals_told(name: str) -> Iterator[None]:
    """Raise InputError for any error of a tracker, in a sentence without addresses' passwords and keys."""
    try:
        yield
    except Exception as error:
        file = (
            f"{error.filename} cannot be written: " if isinstance(error, OSError) and error.filename else ""
        )
        words = re.sub(r"//[^/@\s]+@", "//", f"{file}{first_line(error)}")
        for key, value in os.environ.items():
            if _SECRET.search(key.upper()) and len(value) >= _LEAST:
                words = words.replace(value, f"${key}")
        raise InputError(f"--log {name}: {words}") from None


def log_board(tracker: Tracker, board: Board, backbones: Collection[str]) -> None:
    """Log the scores of every block of some backbones, and their best blocks.

    Of a backbone, scores are logged over layers; of a checkpoint of a training, those of each layer over the
    steps. The best block and its score are logged over the steps, or at 0.
    """
    places: dict[tuple[str, int], dict[str, float]] = {}
    for column in board.columns:
        for name in (each for each in board.labels if each in backbones):
            for axis, at, title, value in _points(column, name):
                if math.isfinite(value):
                    places.setdefault((axis, at), {})[title] = value
    for (axis, at), numbers in sorted(places.items()):
        tracker.log(numbers, axis, at)


def _points(column: Column, name: str) -> Iterator[tuple[str, int, str, float]]:
    """Axis, place on it, title and number of all that is logged of a backbone in a column."""
    series, step = Variant.of(name).checkpoint
    heading = column.heading.removesuffix(" †")
    rows = column.candidates[column.candidates["backbone"] == name]
    for layer, value in zip(rows["layer"].astype(int), rows["value"].astype(float), strict=True):
        if step < 0:
            yield LAYER, layer, f"{heading}/{series}", value
        else:
            yield TRAINING_STEP, step, f"{heading}/{series}/layer {layer:02}", value
    best = column.best[column.best["backbone"] == name]
    for layer, value in zip(best["layer"].astype(int), best["value"].astype(float), strict=True):
        yield TRAINING_STEP, max(step, 0), f"best score/{heading}/{series}", value
        yield TRAINING_STEP, max(step, 0), f"best layer/{heading}/{series}", float(layer)
