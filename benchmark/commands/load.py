"""Load a backbone cut after a layer, by name, as a run does: `layerboard.load`."""

import logging
from dataclasses import KW_ONLY, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from layerboard.benchmark.forms import parsers
from layerboard.benchmark.forms.option import Form, Option, OptionalPath, Plain, called_with
from layerboard.benchmark.forms.request import DeviceOptions, InterpolationChoice
from layerboard.tasks.framework.transforms import misfit, parse_compression
from layerboard.zoo.errors import InputError, ensure
from layerboard.zoo.spec import BackboneSpec, Dtype, Layer, Tap

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from layerboard.zoo.features.backbone import Backbone
    from layerboard.zoo.features.cut import CutBackbone
    from layerboard.zoo.view.views import View

_LOG = logging.getLogger(__name__)
Pooling = Literal["auto", "cls", "mean", "cls+mean", "gem", "all", "grid", "patchwise"]
KEPT = 2  # cut backbones that stay in memory, for the copies that a search or a cross-validation makes


def layer(value: object) -> str:
    """The number of a block as text, also with a tap (``9.block-normed``), or ``final``."""
    text = "" if isinstance(value, bool) else str(value)
    number, dot, tap = text.partition(".")
    is_known = number.isdecimal() and (tap in parsers.TAPS if dot else not tap)
    if not isinstance(value, int | str) or not (text == "final" or is_known):
        expected = "the number of a block, also with a tap of run --taps such as '9.block-normed', or 'final'"
        raise parsers.WrongValueError(expected, value)
    return text


class LoadRequest(DeviceOptions, kw_only=False):
    """Options of `load`: the backbone, where it ends, and its output."""

    name: Option[str | Path, str] = Option(
        ...,
        "A name, a Hub id, a directory, onnx:FILE, or a Python function (module:function).",
        parsers.backbone,
    )
    _: KW_ONLY
    layer: Option[int | str | None, str | None] = Option(
        None,
        "Block after which the backbone ends, also with a tap ('9.block-normed'), or 'final'.",
        layer,
        usual="the last block",
    )
    pooling: Plain[Pooling] = Option(
        "auto",
        "cls: the class token; mean: mean of the patch tokens; cls+mean: both, one after the other; gem: "
        "generalised mean of the patch tokens (p = 3); all: mean of the class token and the patch tokens; "
        "grid: patch tokens in their places; "
        "patchwise: for a ConvNet, blocks of neighbouring cells are concatenated, then averaged; auto: cls "
        "if there is one.",
    )
    task: Plain[str] = Option("knn", "Preprocess images as this task does.")
    protocol: Plain[str] = Option("standard", "Protocol of the preprocessing.")
    input_size: Plain[int | None] = Option(
        None, "Side in pixels, rounded to the patch size.", least=1, usual="its own"
    )
    interpolation: Plain[InterpolationChoice] = Option("auto", "Interpolation of position embeddings.")
    weights: OptionalPath = Option(
        None, "File or directory of weights to use instead of its own, also as NAME=PATH."
    )
    dtype: Plain[Dtype] = Option("float32", "Dtype of the forward pass.")


@called_with(LoadRequest)
def load(request: LoadRequest) -> "CutBackbone":
    """Load a backbone cut after a layer, as a function from images to vectors.

    Later blocks are never run and their weights are dropped, so that the cost is that of this depth in the
    table of costs. Images are preprocessed as in a run; but values of more than 8 bits are scaled from the
    range that those of the one image use, where a run knows the range of a whole dataset.

    The function maps a Pillow image, a path, an array uint8 [height width channels], any iterable of these,
    or a tensor of uint8 pixels [images 3 height width] to float32 vectors [images dim] (grids
    [images rows columns dim] with ``pooling="grid"``) on its device. It has the attributes ``spec``,
    ``layer``, ``dim`` and ``parameters``; ``module`` is a module of torch for a head on top, and
    ``preprocess`` maps an image to the pixels that the network is shown, for a dataset of torch.

    Example:
        >>> import layerboard
        >>> from PIL import Image
        >>> encode = layerboard.load("mini-dino", layer=8, pooling="cls")
        >>> encode(Image.new("RGB", (80, 60), "green")).shape
        torch.Size([1, 96])
    """
    return _cut_of(request)


def cached_load(request: LoadRequest) -> "CutBackbone":
    """What `load` gives; what it gave before, if the same weights and options were asked for of late."""
    from layerboard.zoo.load.backbone import identify

    spec = _spec(request)
    return _kept(request, spec, identify(spec, cache_dir=request.cache))


@lru_cache(maxsize=KEPT)
def _kept(request: LoadRequest, *known: object) -> "CutBackbone":
    del known  # the backbone's facts and the digest of its weights, by which it is asked
    return _cut_of(request)


def _cut_of(request: LoadRequest) -> "CutBackbone":
    """A backbone cut as the options say."""
    from layerboard.zoo.features.cut import CutBackbone, Pooled

    backbone, view = whole_backbone(request)
    spec, text, asked = backbone.spec, request.layer or str(backbone.spec.depth), request.pooling
    number, _, tap = text.partition(".")
    named: Tap = next((each for each in parsers.TAPS if each == tap), "block")
    layer = Layer(spec.depth, "final") if text == "final" else Layer(int(number), named)
    pooling: Pooled = (spec.vectors or ("cls" if spec.has_cls else "mean")) if asked == "auto" else asked
    return CutBackbone(backbone, layer, pooling, view)


def whole_backbone(request: LoadRequest) -> "tuple[Backbone, View]":
    """The backbone with all of its layers, and the view that preprocesses images for it."""
    from layerboard.benchmark.engines.choose import find_device
    from layerboard.benchmark.plan.plan import view_for
    from layerboard.tasks.framework.protocols import find_protocol
    from layerboard.tasks.framework.registry import NO_DATA, config_of, find_tasks
    from layerboard.tasks.framework.sources import IMAGES
    from layerboard.zoo.load.backbone import load_backbone

    spec, rules = _spec(request), find_protocol(request.protocol)
    (task,) = find_tasks((request.task,))[:1]
    ensure(rules.covers(task.name), f"the protocol {rules.name} covers only {', '.join(rules.tasks or ())}")
    ensure(task.role != NO_DATA, f"{task.name} uses no images; name a task that does, such as knn")
    config = rules.config_for(IMAGES) if task.role == "classification" else config_of(rules, task.name)
    device = find_device(request.device)
    return load_backbone(spec, device=device, cache_dir=request.cache), view_for(spec, config.view)


class CompressionCall(Form, kw_only=False):
    """Options of `compression`: the compression, and the vectors to fit it on."""

    name: Plain[str] = Option(
        ...,
        "Name of the compression, as for run --compress, such as pca:128+int8.",
        lambda name: parse_compression(parsers.text(name)),
    )
    known: Plain[Any] = Option(..., "Vectors [n dim] to fit on, those of the database.")


@called_with(CompressionCall)
def compression(call: CompressionCall) -> "Callable[[ArrayLike], NDArray[np.float32]]":
    """Fit a compression of vectors.

    Returns a function from vectors [m dim] to their compressed and decompressed versions, float32
    [m numbers], which ``run --compress`` scores. Vectors may be tensors on any device. Raises InputError for
    an unknown name or vectors that do not suit it; the function raises it for vectors of another dimension.
    Vectors that contain NaN or infinity become all NaN.

    Example:
        >>> import layerboard
        >>> import numpy as np
        >>> vectors = np.random.default_rng(0).standard_normal((300, 96), np.float32)
        >>> layerboard.compression("pca:32+int8", vectors)(vectors[:5]).shape
        (5, 32)
    """
    import numpy as np

    from layerboard.tasks.framework.transformed import fit_compression

    known = _float32(call.known)
    if known.ndim != 2 or not known.size:
        raise InputError(f"expected vectors [n dim] of finite numbers, found an array of {known.shape}")
    if lost := np.count_nonzero(~np.isfinite(known).all(axis=1)):
        raise InputError(
            f"expected vectors of finite numbers, found NaN or infinity in {lost} of {len(known)}; "
            "leave these out"
        )
    if reason := misfit(call.name, *known.shape):
        raise InputError(reason)
    change = fit_compression(call.name, [known])

    def compressed(vectors: "ArrayLike") -> "NDArray[np.float32]":
        asked = _float32(vectors)
        if asked.shape[1:] != known.shape[1:]:
            raise InputError(f"expected vectors [m {known.shape[1]}], found an array of {asked.shape}")
        return change(asked)

    return compressed


def _float32(vectors: "ArrayLike") -> "NDArray[np.float32]":
    """Vectors of any kind, tensors on any device included, as an array."""
    import numpy as np
    import torch

    return np.asarray(vectors.cpu() if isinstance(vectors, torch.Tensor) else vectors, np.float32)


def _spec(request: LoadRequest) -> BackboneSpec:
    """The one backbone of that name, with the requested weights and input size."""
    from layerboard.benchmark.plan.backbones import named_variants, shown_as, with_rule, with_weights
    from layerboard.zoo.load.backbone import describe_backbone
    from layerboard.zoo.registry.find import find

    (named,) = named_variants([request.name])
    if named.input_size is not None and request.input_size not in (None, named.input_size):
        raise InputError(f"{request.name!r} names an input size, and --input-size another; leave one out")
    if named.dtype is not None and request.dtype not in ("float32", named.dtype):
        raise InputError(f"{request.name!r} names a number format, and --dtype another; leave one out")
    specs = find([named.entry], cache_dir=request.cache)
    if len(specs) > 1:
        names = ", ".join(spec.name for spec in specs[:3])
        raise InputError(f"{named.entry!r} stands for {len(specs)} backbones ({names}, ...); name one")
    if request.weights is not None:
        path = Path(str(request.weights).removeprefix(f"{specs[0].name}="))
        specs = tuple(with_weights(specs, {specs[0].name: path}))
        if facts := describe_backbone(specs[0], request.cache):
            _LOG.warning(facts)
    size, dtype = request.input_size or named.input_size, named.dtype or request.dtype
    variant = replace(named, input_size=size, dtype=dtype)
    return shown_as(with_rule(specs[0], request.interpolation), variant)
