"""No measurer waits for its device or mixes devices inside a pass, seen where there is no GPU.

Tensors of the device ``meta`` have shapes and no values: to ask for one raises, and so does a mix of devices.
The one transfer that ends a group, or a shard of vectors, gives ones in place of values here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.passes import collectors
from layerboard.benchmark.passes.collectors import FAILURE, Collector, MeasuredCollector, VectorCollector
from layerboard.benchmark.passes.loading import Loader
from layerboard.benchmark.passes.one_pass import Listener, run_pass
from layerboard.benchmark.passes.shards import MeasuredLayers, Shards
from layerboard.benchmark.plan.location import DataLocation
from layerboard.benchmark.plan.plan import Pass, Plan, make_plan, view_for
from layerboard.benchmark.plan.suites import STANDARD_SUITE
from layerboard.tasks.framework.protocols import PAPER, STANDARD, EvaluationProtocol
from layerboard.tasks.framework.registry import COST
from layerboard.tasks.framework.task import Task
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from tests.benchmark.runs import PUBLIC
from tests.zoo.reduced import reduce

META = torch.device("meta")
BATCH = 6  # some groups of images are in two batches

MEASURED = (
    *("segment", "anomaly", "davis", "spair", "cluster-object", "cluster-part", "cka", "attention-maps"),
    *("attention-distance", "attention-shares", "saliency", "localisation", "position-audit"),
    *("residuals", "residual-cka", "locality", "token-probes"),
)
"""Tasks and analyses that are fed by a pass."""

OF_ATTENTION = ("attention-maps", "attention-distance", "attention-shares", "saliency")
"""Those that a ConvNet cannot be asked for."""

CASES = (
    pytest.param("dinov3-s16", STANDARD, id="dinov3-s16"),  # a class token and registers
    pytest.param("siglip-b16", PAPER, id="siglip-b16", marks=pytest.mark.slow),  # no prefix tokens
    pytest.param("resnet50", STANDARD, id="resnet50"),
)


@dataclass
class Left:
    """What a pass left behind: which listeners failed, and the arrays of each of the others."""

    failed: set[str]
    arrays: dict[str, dict[str, NDArray[np.generic]]]


def planned(data: Path, rules: EvaluationProtocol, sets: tuple[str, ...] = ()) -> Plan:
    """Everything that is fed by a pass, and k-NN for its vectors, on tiny datasets."""
    location = DataLocation(STANDARD_SUITE.datasets, data, limit=1, protocol=rules)
    return make_plan(find(["clip-b32"]), ("knn", *MEASURED), location, sets=sets)


def on_meta(name: str, folder: Path) -> Backbone:
    """A small network without values."""
    small = reduce(find([name])[0], folder).spec
    return load_backbone(small, device=META, cache_dir=folder / "cache")


def collector_of(task: Task, one: Pass, spec: BackboneSpec, folder: Path) -> MeasuredCollector:
    fed = task.fed_by(one.source)
    every = spec.layers if spec.heads else spec.layers[3::4]  # the last blocks of two stages of a ResNet
    layers = task.measured_layers(one.source, every, spec)
    if task.memory is not None and task.scores_from(one.source):
        source = task.memory.source
        store = Shards(folder / source.name / task.listener, source.shards)
        before = task.memory.feed.layers(every, spec)
        fed = task.remembering(MeasuredLayers(source, store, before), {})
    source = replace(fed.source, view=view_for(spec, fed.source.view))
    return MeasuredCollector(fed, source, layers, spec.patch_size)


def listeners_of(one: Pass, backbone: Backbone, folder: Path) -> list[Listener]:
    """All that look at a source, as far as the backbone can show what they need."""
    spec = backbone.spec
    found: dict[str, Collector] = {
        task.listener: collector_of(task, one, spec, folder) for task in one.measured
    }
    if one.vectors:
        layers, poolings = frozenset(spec.layers), spec.poolings_of(("cls", "mean", "patchwise"))
        found["vectors"] = VectorCollector(one.source, layers, poolings, torch.float16, spec.width)
    shards = one.source.shards
    return [
        Listener(name, collector, Shards(folder / one.source.name / name, shards), set(range(shards)))
        for name, collector in found.items()
        if not backbone.refusal(collector.layers)
    ]


def run(one: Pass, listeners: list[Listener], backbone: Backbone) -> None:
    source = replace(one.source, view=view_for(backbone.spec, one.source.view))
    run_pass(source, listeners, backbone, BATCH, Loader(1), Silent())


def show(one: Pass, backbone: Backbone, folder: Path) -> Left:
    """A pass with all listeners."""
    listeners = listeners_of(one, backbone, folder)
    run(one, listeners, backbone)
    arrays = {
        each.name: {
            name: array
            for shard in range(each.store.count)
            for name, array in each.store.arrays(shard).items()
        }
        for each in listeners
        if each.failure is None
    }
    return Left({each.name for each in listeners if each.failure}, arrays)


def to_host(arrays: Mapping[Any, Tensor]) -> dict[Any, Tensor]:
    """What leaves the device has the shape that it had there, and is all ones."""
    return {
        name: torch.ones(array.shape, dtype=array.dtype) if array.is_meta else array.contiguous()
        for name, array in arrays.items()
    }


@pytest.mark.parametrize(("name", "rules"), CASES)
def test_no_listener_asks_for_a_value_before_its_transfer(
    name: str, rules: EvaluationProtocol, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collectors, "to_host", to_host)
    backbone = on_meta(name, tmp_path / name)
    plan = planned(data, rules, sets := () if backbone.spec.heads is None else ("last4", "pairs"))
    passes = [one for one in plan.passes if one.measured]
    left = [show(one, backbone, tmp_path) for one in passes]
    assert not set().union(*(one.failed for one in left))
    there = {task for one in left for task in one.arrays}
    unasked = OF_ATTENTION if backbone.spec.heads is None else ()
    fused = {task.listener for task in plan.tasks.needing("passes") if task.sets and task.measured}
    assert len(fused) == (4 if sets else 0)
    assert {name.partition(" ")[0] for name in there - fused} == {"vectors", *MEASURED} - {*unasked}
    assert fused <= there
    for task, arrays in (each for one in left for each in one.arrays.items()):
        assert arrays, task
        assert not [array for array in arrays if array.endswith(FAILURE)], task


def test_none_that_is_fed_by_a_pass_is_left_out(data: Path) -> None:
    location = DataLocation(STANDARD_SUITE.datasets, data, limit=2)
    names = tuple(name for name in PUBLIC if name != COST)
    every = make_plan(find(["clip-b32"]), names, location).tasks.every
    assert {task.entry.name for task in every if task.measured} == set(MEASURED)
