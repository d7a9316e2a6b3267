"""A backbone that ends after a layer, loaded by name as a run loads it."""

from collections.abc import Callable, Mapping
from typing import get_args

import torch

from benchmark.engines.choose import find_device
from benchmark.plan.backbones import with_weights
from benchmark.plan.plan import view_for
from benchmark.plan.sizes import at_size, split_sizes
from benchmark.request.loading import LoadRequest
from tasks.protocols import EvaluationProtocol, find_protocol
from tasks.registry import Role, find_tasks
from zoo.errors import InputError
from zoo.features.cut import CutBackbone, Pooled
from zoo.load.backbone import load
from zoo.registry import find
from zoo.spec import BackboneSpec, Layer
from zoo.view.views import View

_VIEWS: Mapping[Role, Callable[[EvaluationProtocol], View]] = {
    "classification": lambda rules: rules.images,
    "retrieval": lambda rules: rules.retrieval.view,
    "videos": lambda rules: rules.propagation.view,
    "keypoints": lambda rules: rules.keypoints.view,
    "objects": lambda rules: rules.clusters.view,
    "parts": lambda rules: rules.clusters.view,
    "scenes": lambda rules: rules.segmentation.view,
    "masks": lambda rules: rules.saliency.view,
}
"""How the tasks of each role show images."""


def loaded(request: LoadRequest) -> CutBackbone:
    """The backbone that is asked for, on its device.

    Raises:
        InputError: There is no such backbone, layer, pooling or task, or its files cannot be had.
    """
    view, device = _view(request), find_device(request.device)
    spec = _spec(request)
    layer = _layer(request.layer, spec)
    dtype = getattr(torch, request.dtype)
    backbone = load(spec, device=device, dtype=dtype, cache_dir=request.cache)
    pooling: Pooled = "cls" if spec.has_cls else "mean"
    for one in get_args(Pooled):
        pooling = one if one == request.pooling else pooling
    return CutBackbone(backbone, layer, pooling, view_for(spec, view))


def _view(request: LoadRequest) -> View:
    """How the task shows images by the protocol."""
    rules = find_protocol(request.protocol)
    (task,) = find_tasks((request.task,))[:1]
    if not rules.speaks_of(task.name):
        raise InputError(f"the protocol {rules.name} speaks of {', '.join(rules.tasks or ())} alone")
    if task.role not in _VIEWS:
        raise InputError(f"{task.name} shows no images; name a task that does, such as knn")
    return _VIEWS[task.role](rules)


def _spec(request: LoadRequest) -> BackboneSpec:
    """The one backbone of that name, with the weights and at the size that are asked for."""
    ((name, size),) = split_sizes([request.name])
    if size is not None and request.input_size not in (None, size):
        raise InputError(f"{request.name!r} names an input size, and --input-size another; leave one out")
    specs = find([name], cache_dir=request.cache)
    if len(specs) > 1:
        names = ", ".join(spec.name for spec in specs[:3])
        raise InputError(f"{request.name!r} stands for {len(specs)} backbones ({names}, ...); name one")
    if request.weights is not None:
        specs = tuple(with_weights(specs, {specs[0].name: request.weights}))
    (spec,) = at_size(specs, request.input_size or size, request.interpolation)
    return spec


def _layer(text: str | None, spec: BackboneSpec) -> Layer:
    if text == "final":
        return Layer(spec.depth, "final")
    return Layer(spec.depth if text is None else int(text))
