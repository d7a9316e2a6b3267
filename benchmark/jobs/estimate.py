"""How long passes take: guessed from the backbone's shape, put right by what was measured."""

from collections import defaultdict

import pandas as pd

from benchmark.engines.choose import device_name
from benchmark.jobs.job import Setup
from benchmark.plan.plan import view_for
from leaderboards.records.files import scored_path
from leaderboards.records.record import UNREADABLE
from zoo.spec import BackboneSpec
from zoo.view.views import View

SPEED = {"cpu": 5e10, "cuda": 1e13}
"""Multiply-adds a second that a device is taken to do; the order of work follows, and where it is cut."""

OVERHEAD = {"cpu": 2e-3, "cuda": 5e-4}
"""Seconds an image beside the forward: decoding, measuring, writing."""

USUAL_PHOTO = (640, 480)
"""Width and height in pixels that images are taken to have; to look would mean to open them."""


def multiply_adds(spec: BackboneSpec, pixels: int) -> float:
    """Multiply-adds of the forward of an image, roughly: the matrix products of the blocks.

    A block of a transformer has 12 x width^2 for each token, and 2 x width for each pair of tokens; a
    bottleneck block of a ConvNet about width^2 for each cell.
    """
    total = 0.0
    for stage in spec.stages:
        cells = pixels / stage.stride**2
        weights = 12 if spec.heads else 1
        pairs = 2 * cells**2 * stage.width if spec.heads and len(spec.stages) == 1 else 0.0
        total += stage.blocks * (weights * stage.width**2 * cells + pairs)
    return total


class Guesses:
    """How many seconds images take: guessed, and put right by what is measured of each backbone."""

    def __init__(self) -> None:
        self._guessed: defaultdict[str, float] = defaultdict(float)
        self._measured: defaultdict[str, float] = defaultdict(float)

    def seconds(self, setup: Setup, view: View) -> float:
        """Seconds that an image takes, in a view as the source has it, before anything was measured."""
        spec, kind = setup.spec, setup.device.type
        width, height = view_for(spec, view).geometry(USUAL_PHOTO).size
        rate = self._recorded_rate(setup)
        speed = rate * multiply_adds(spec, spec.input_size**2) if rate else SPEED[kind]
        return multiply_adds(spec, width * height) / speed + OVERHEAD[kind]

    def learn(self, setup: Setup, guessed: float, measured: float) -> None:
        """Hear how many seconds a backbone's piece took."""
        for name in (setup.spec.name, ""):
            self._guessed[name] += guessed
            self._measured[name] += measured

    def factor(self, setup: Setup) -> float:
        """By what a guess for the backbone is to be multiplied; by what was measured of others if need be."""
        name = setup.spec.name if self._guessed[setup.spec.name] else ""
        return self._measured[name] / self._guessed[name] if self._guessed[name] else 1.0

    def _recorded_rate(self, setup: Setup) -> float:
        """Images a second of input size by the backbone's record of cost on this device; 0 without one."""
        for task in setup.plan.tasks.costs:
            key = task.on(device_name(setup.device)).key
            path = setup.request.output / "records" / scored_path(key, setup.spec.name)
            try:
                frame = pd.read_parquet(path, columns=["metric", "value"])
            except UNREADABLE:
                continue
            found = frame.loc[frame["metric"] == "images-per-second", "value"].dropna()
            return float(found.max()) if len(found) else 0.0
        return 0.0
