"""Export of a backbone up to some layers as an ONNX file, which is kept only after comparison with torch."""

import json
import logging
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from layerboard.zoo.atomic import temporary_folder
from layerboard.zoo.errors import InputError, first_line
from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.cut import Pooled, pooled, require_pooling
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.own.module.network import CPU
from layerboard.zoo.own.onnx_file import OnnxSession, onnx_library
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import View

TOLERANCE = 1e-4  # maximum deviation from torch, as a share of an output's largest number

Outputs = Sequence[tuple[Layer, Pooled]]  # in forward order
# an output, the maximum deviation of the file from torch, and its share of the output's largest number
Misfit = tuple[str, float, float]


class _Reader(nn.Module):
    """A backbone as a function from uint8 pixels [batch 3 height width] to outputs of some layers."""

    def __init__(self, backbone: HookedBackbone, outputs: Outputs) -> None:
        super().__init__()
        self.parts = nn.ModuleList(backbone.parts)  # the exporter looks for weights among its modules
        self.backbone, self.outputs = backbone, outputs

    def forward(self, pixels: Tensor) -> tuple[Tensor, ...]:
        read: list[Tensor] = []

        def keep(shown: Shown) -> None:
            assert isinstance(shown, LayerFeatures)
            poolings = (pooling for layer, pooling in self.outputs if layer == shown.layer)
            read.extend(pooled(shown, pooling, self.backbone.spec.width) for pooling in poolings)

        self.backbone.visit(pixels, keep, [layer for layer, _ in self.outputs])
        return tuple(read)


def write_onnx(
    backbone: Backbone,
    outputs: Outputs,
    images: Sequence[Image.Image],
    view: View,
    batch: int | None,
    path: Path,
) -> list[Misfit]:
    """Write an ONNX file with outputs such as ``8.cls`` and ``8.grid``, named by layer and pooling.

    It takes uint8 RGB [batch 3 height width] at the backbone's input size, ``batch`` images at once or any
    number for None, and normalises them itself. Its metadata say what it was made of, and by which view
    images get that size. Its outputs for the images are compared with torch's. Weights of 2 GB and more are
    in FILE.data beside it. Raises InputError, and leaves no file, if the backbone is no torch network in
    float32, if an operator has no counterpart in ONNX, or if an output differs by more than `TOLERANCE`.
    """
    spec = backbone.spec
    if not isinstance(backbone, HookedBackbone):
        raise InputError(f"{spec.name} is no network of torch that could be exported; name one that is.")
    if spec.dtype != "float32":
        raise InputError(f"{spec.name} computes in {spec.dtype}; networks are exported in float32.")
    for _, pooling in outputs:
        require_pooling(spec, pooling)
    pixels = torch.cat([view.render(image) for image in images])
    reader, names = _Reader(backbone, outputs), [f"{layer}.{pooling}" for layer, pooling in outputs]
    program = _translated(reader, names, batch)
    facts: dict[str, object] = {
        "backbone": spec.entry,
        "revision": backbone.revision,
        "blocks": max(layer.index for layer, _ in outputs),
        "layers": ", ".join(dict.fromkeys(str(layer) for layer, _ in outputs)),
        "poolings": ", ".join(dict.fromkeys(pooling for _, pooling in outputs)),
        "input_size": spec.input_size,
        "view": view,
        "mean": json.dumps(spec.mean),
        "std": json.dumps(spec.std),
        "pixels": "uint8 RGB; the network normalises them by mean and std",
    }
    program.model.metadata_props.update({name: str(fact) for name, fact in facts.items()})
    for node in program.model.graph.all_nodes():
        node.metadata_props.clear()  # the source lines that each node comes from
    with temporary_folder(path.parent) as folder:
        program.save(folder / path.name)
        differences = _differences(folder / path.name, reader, names, pixels)
        for file in sorted(folder.iterdir(), reverse=True):  # the weights beside it before the file
            os.replace(file, path.with_name(file.name))
    return differences


def _translated(reader: _Reader, names: Sequence[str], batch: int | None) -> Any:  # noqa: ANN401  # torch.onnx.ONNXProgram
    """The ONNX program of a network."""
    for each in ("onnx", "onnxscript", "onnxruntime"):
        onnx_library(each)
    spec = reader.backbone.spec
    example = torch.zeros(batch or 2, 3, spec.input_size, spec.input_size, dtype=torch.uint8)
    any_batch = None if batch else ({0: torch.export.Dim.DYNAMIC},)
    logging.disable(logging.WARNING)  # the exporter's advice, such as on libraries that are not needed
    try:
        with warnings.catch_warnings(action="ignore"):
            graph = torch.export.export(reader, (example,), dynamic_shapes=any_batch, strict=False)
            return torch.onnx.export(
                graph, input_names=["pixels"], output_names=names, dynamo=True, verbose=False
            )
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        reason = first_line(cause).rstrip(". ")
        if "Constraints violated" in reason:
            reason = "its code, such as len(images), fixes the number of images; give --batch N"
        raise InputError(f"{spec.name} cannot be exported to ONNX: {reason}.") from error
    finally:
        logging.disable(logging.NOTSET)


def _differences(path: Path, reader: _Reader, names: Sequence[str], pixels: Tensor) -> list[Misfit]:
    """Deviations of outputs from torch's, for all images together and for the first one alone.

    Raises InputError for one of more than `TOLERANCE`.
    """
    session, differences = OnnxSession(path, CPU), list[Misfit]()
    rows = zip(names, reader(pixels), session(pixels), session(pixels[:1]), strict=True)
    for name, expected, together, alone in rows:
        largest = float(torch.cat((together - expected, alone - expected[:1])).abs().max())
        share = largest / max(float(expected.abs().max()), 1e-30)
        if not share <= TOLERANCE:  # NaN, too
            raise InputError(
                f"{reader.backbone.spec.name}: as ONNX, {name} differs from torch by {largest:.2g}, "
                f"{share:.2g} of its largest number; {TOLERANCE:g} may be, so no file was kept."
            )
        differences.append((name, largest, share))
    return differences
