"""Any network in an ONNX file that maps images to vectors or grids, as a backbone: ``onnx:FILE``."""

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import isqrt
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor

from layerboard.zoo.entries import SPECS
from layerboard.zoo.errors import InputError, first_line, shortened, some
from layerboard.zoo.features import BackboneIdentity, LayerFeatures, Visitable, Visitor
from layerboard.zoo.features.layers import wanted_layers
from layerboard.zoo.features.pass_context import pass_context
from layerboard.zoo.libraries import optional
from layerboard.zoo.load.checkpoint import files_digest, refuse_pages
from layerboard.zoo.load.described import images_in_words, normalisation_of, shape_in_words, titled
from layerboard.zoo.own.module.network import CPU
from layerboard.zoo.own.module.objects import ObjectLoader
from layerboard.zoo.own.module.probe import require_own_features
from layerboard.zoo.reading import decoded, require_regular
from layerboard.zoo.spec import IMAGENET, BackboneSpec, Layer, Stage, VectorPooling
from layerboard.zoo.spec.origin import ONNX
from layerboard.zoo.view.views import REFERENCE_SIZE

_TYPES = {"tensor(uint8)": torch.uint8, "tensor(float16)": torch.float16, "tensor(float)": torch.float32}
_KINDS = "|".join(map(re.escape, ("grid", *get_args(VectorPooling))))
_OUTPUT = re.compile(rf"([1-9]\d{{0,3}}|final)\.({_KINDS})")  # names of outputs in an export
_MOST = 4096  # pixels a side of an image, images at once, and blocks
_MOST_PIXELS = 1 << 26  # of the images at once
_NUMBER = re.compile(r"[1-9][0-9]{0,3}")  # of metadata
_CLAIMED = ("supervision", "data", "licence")  # facts that a file claims by the name of a backbone
# The entry ``location`` of an external tensor, up to the length of its value.
_LOCATION = re.compile(rb"\x0a\x08location\x12([\x80-\xff]{0,2}[\x00-\x7f])")


def onnx_library(name: str) -> Any:  # noqa: ANN401  # a module
    """One of the libraries of the extra ``onnx``; raises InputError if it is missing or broken."""
    return optional(name, f"ONNX needs {name}; install it with: pip install 'layerboard[onnx]'")


class OnnxSession:
    """A network in an ONNX file that onnxruntime runs on a device, as a function of images.

    ``batch`` is the number of images that it takes at once and ``side`` their side in pixels, each None if it
    takes any; ``takes_bytes`` says that it normalises uint8 pixels itself. ``names`` are those of its
    floating-point outputs, ``facts`` its metadata. Raises InputError if it is no network, does not run there,
    or takes anything but a batch of square RGB images.
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        self.path, self.device = path, device
        self._session = _started(path, device)
        self.facts: Mapping[str, str] = self._session.get_modelmeta().custom_metadata_map
        inputs = self._session.get_inputs()
        shape = inputs[0].shape if len(inputs) == 1 and len(inputs[0].shape) == 4 else [0] * 4
        sizes = [size if isinstance(size, int) and size > 0 else None for size in shape]
        self._channels_last = sizes[3] == 3 != sizes[1]
        batch, channels, *sides = [sizes[axis] for axis in (0, 3, 1, 2)] if self._channels_last else sizes
        if channels != 3 or sides[0] != sides[1] or inputs[0].type not in _TYPES:
            listed = ", ".join(f"{each.name} {each.type} {each.shape}" for each in inputs)
            raise InputError(
                f"{path} should take nothing but square RGB images [batch 3 height width], not "
                f"{listed or 'nothing'}."
            )
        self._input, self._type = inputs[0].name, _TYPES[inputs[0].type]
        self.takes_bytes = self._type == torch.uint8
        said = self.whole_number("input_size")
        self.batch, self.side = batch, sides[0] or said
        if said and said != self.side:
            raise InputError(f"{path} takes images of {self.side} px; its metadata says input_size {said}.")
        if (self.side or 1) > _MOST or (batch or 1) * (self.side or 1) ** 2 > _MOST_PIXELS:
            raise InputError(
                f"{path} takes {batch or 1:,} images of {self.side:,} px at once; at most {_MOST:,} px "
                f"a side and {_MOST_PIXELS:,} pixels are supported."
            )
        self.mean, self.std = (self._three(name) for name in ("mean", "std"))
        self.names = [each.name for each in self._session.get_outputs() if "float" in each.type]

    def __call__(self, pixels: Tensor) -> list[Tensor]:
        """The network's outputs by `names`, float32, for images, uint8 [batch 3 height width]."""
        images = pixels.cpu()
        if not self.takes_bytes:
            mean, std = (torch.tensor(each)[:, None, None] for each in (self.mean, self.std))
            images = ((images.float() / 255 - mean) / std).to(self._type)
        images = images.permute(0, 2, 3, 1) if self._channels_last else images
        parts = [self._run(part.numpy()) for part in torch.split(images, self.batch or len(images))]
        outputs = (torch.from_numpy(np.concatenate(each)) for each in zip(*parts, strict=True))
        return [output.to(self.device, torch.float32) for output in outputs]

    def _run(self, images: "np.ndarray[Any, Any]") -> list["np.ndarray[Any, Any]"]:
        """Outputs for images, which are padded if the file takes more at once."""
        short = (self.batch or len(images)) - len(images)
        filled = np.pad(images, ((0, short), (0, 0), (0, 0), (0, 0)))
        try:
            # onnxruntime returns all outputs if none is named
            outputs = self._session.run(self.names, {self._input: filled}) if self.names else []
        except Exception as error:
            if "allocat" in str(error).lower():
                raise MemoryError(str(error)) from error
            raise InputError(f"{self.path} fails on images {[*filled.shape]}: {_said(error)}.") from error
        return [output[: len(images)] if output.ndim else output[None] for output in outputs]

    def _three(self, name: str) -> tuple[float, float, float]:
        """Three numbers of its metadata, a list in JSON; ImageNet's if it has none."""
        usual: tuple[float, float, float] = getattr(IMAGENET, name)
        text = self.facts.get(name, json.dumps(usual))
        try:
            values = decoded(tuple[float, float, float], text)
            if all(abs(value) <= 1e6 for value in values) and (name != "std" or min(values) >= 1e-6):
                return values
        except ValueError:
            pass  # said below
        raise InputError(f"{self.path} should give three numbers as {name}, not {shortened(text)}.")

    def whole_number(self, name: str) -> int | None:
        """A number of its metadata, from 1 to 4096; None if it has none."""
        text = self.facts.get(name, "")
        number = int(text) if _NUMBER.fullmatch(text) else 0
        if text and not 1 <= number <= _MOST:
            raise InputError(
                f"{self.path} should give a whole number from 1 to {_MOST} as {name}, not {shortened(text)}."
            )
        return number or None


def _started(path: Path, device: torch.device) -> Any:  # noqa: ANN401  # of a library without types
    """An onnxruntime session with as many threads as torch."""
    runtime = onnx_library("onnxruntime")
    options = runtime.SessionOptions()
    providers: list[Any] = ["CPUExecutionProvider"]
    options.intra_op_num_threads, options.log_severity_level = torch.get_num_threads(), 4
    if device.type == "cuda":
        if "CUDAExecutionProvider" not in runtime.get_available_providers():
            raise InputError("this onnxruntime knows no CUDA; install onnxruntime-gpu, or give --device cpu.")
        settings = {"device_id": device.index or 0, "use_tf32": 0}  # products in full float32
        providers.insert(0, ("CUDAExecutionProvider", settings))
    try:
        return runtime.InferenceSession(path, options, providers=providers)
    except Exception as error:
        raise InputError(f"{path} is no network that onnxruntime can run: {_said(error)}.") from error


def _said(error: Exception) -> str:
    """The message of onnxruntime, without its codes."""
    return re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", first_line(error)).rstrip(". ")


class OnnxNetwork:
    """A network in an ONNX file as a backbone (`zoo.features.Visitable`) for images of one size.

    Outputs named by a layer and a pooling or ``grid``, such as ``8.cls`` or ``final.grid``, [batch dim] or
    [batch rows columns dim], belong to that layer, and vectors alone are of that pooling. Those of any other
    file are its one layer: a vector [batch dim], a grid [batch dim rows columns], [batch rows columns dim] or
    [batch tokens dim], whose last tokens are a square, or one of each; others are ignored. Raises InputError
    if there is none, or more than that.
    """

    dtype = torch.float32

    def __init__(self, reference: str, path: Path, device: torch.device) -> None:
        self.session, self.device = OnnxSession(path, device), device
        names = self.session.names
        self._is_export = bool(names) and all(map(_OUTPUT.fullmatch, names))
        self._side = self.session.side or REFERENCE_SIZE
        last = Layer(self.session.whole_number("blocks") or 1, "final")
        batch = self.session.batch or 2
        outputs = self.session(torch.zeros(batch, 3, self._side, self._side, dtype=torch.uint8))
        kinds = {name.partition(".")[2] for name in names} if self._is_export else set()
        self._vectors = next((each for each in get_args(VectorPooling) if kinds == {each}), None)
        self._numbers = self._layer_outputs(outputs, batch, last)
        deepest = max((layer.index for layer in self._numbers), default=0)
        if Layer(deepest, "final") not in self._numbers and last in self._numbers:
            raise InputError(
                f"{path} has an output of layer {deepest}; its metadata should say how many blocks there are."
            )
        shown = [self._shown(layer, outputs) for layer in sorted(self._numbers, key=lambda each: each.place)]
        if not shown or None in shown:
            shapes = (f"{name} {[*output.shape]}" for name, output in zip(names, outputs, strict=True))
            raise InputError(
                f"{path} should give a vector [batch dim], a square grid, or both of one width; it gives "
                f"{', '.join(shapes) or 'no numbers'}; onnx.utils.extract_model keeps outputs that you want."
            )
        self.spec = self._spec(reference, [features for features in shown if features])
        if self.spec.width == 1:
            raise InputError(
                f"{path} gives one number for each image or cell, such as a mask, which is no vector; "
                "onnx.utils.extract_model keeps outputs that you want."
            )
        require_own_features(self, f"{path}, of {some(self.used)}")
        self.revision = files_digest((path, *external_files(path)))
        self.fingerprint = f"onnx-{self.revision.removeprefix('sha256:')}"

    @property
    def used(self) -> list[str]:
        """Names of the outputs that are layers."""
        return [self.session.names[number] for numbers in self._numbers.values() for number in numbers]

    def _layer_outputs(self, outputs: Sequence[Tensor], batch: int, last: Layer) -> dict[Layer, list[int]]:
        """Numbers of the outputs that are vectors or grids, by layer; ``last`` is the final one."""
        numbers: dict[Layer, list[int]] = {}
        for number, (name, output) in enumerate(zip(self.session.names, outputs, strict=True)):
            index = name.partition(".")[0] if self._is_export else "1"
            if len(output) == batch and output.numel() and (output.ndim == 2 or self._cells(output)):
                numbers.setdefault(last if index == "final" else Layer(int(index)), []).append(number)
        return numbers

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        outputs = self.session(pixels)
        for layer in wanted_layers(self.spec, layers):
            shown = self._shown(layer, outputs)
            assert shown is not None
            visitor(shown)

    def _shown(self, layer: Layer, outputs: Sequence[Tensor]) -> LayerFeatures | None:
        """A layer from its outputs; None if they are not those of one."""
        given = [outputs[number] for number in self._numbers[layer]]
        vectors = [output for output in given if output.ndim == 2]
        grids = [grid for output in given if (grid := self._cells(output))]
        if len(vectors) > 1 or len(grids) > 1:
            return None
        if not grids:  # a grid of one cell
            (vector,) = vectors
            cls = vector if self._vectors == "cls" else None
            if self._vectors == "cls+mean":
                if vector.shape[1] % 2:
                    return None
                cls, vector = vector.chunk(2, dim=1)
            return LayerFeatures(layer, cls, vector[:, None, None])
        ((prefix, cells),) = grids
        first = None if prefix is None else prefix[:, 0]
        cls = vectors[0] if vectors else first
        are_alike = cls is None or cls.shape[1] == cells.shape[3]
        return LayerFeatures(layer, cls, cells, prefix) if are_alike else None

    def _cells(self, output: Tensor) -> tuple[Tensor | None, Tensor] | None:
        """An output as tokens before a square grid, [batch tokens dim], and the grid; None if it is not."""
        prefix, cells = None, output
        if output.ndim == 3:
            rows = isqrt(output.shape[1])
            before = output.shape[1] - rows * rows
            if before and output.shape[1] == output.shape[2] and self._side % output.shape[2] == 0:
                return None  # a map without channels, such as depth [batch height width]
            prefix = output[:, :before] if before else None
            cells = output[:, before:].reshape(len(output), rows, rows, -1)
        elif output.ndim == 4 and output.shape[2] == output.shape[3] and not self._is_export:
            cells = output.permute(0, 2, 3, 1)
        is_grid = cells.ndim == 4 and cells.shape[1] == cells.shape[2] and self._side % cells.shape[1] == 0
        return (prefix, cells) if is_grid else None

    def _spec(self, reference: str, shown: Sequence[LayerFeatures]) -> BackboneSpec:
        """The spec, from a forward pass that showed all of its layers."""
        first, stages, before = shown[0], dict[tuple[int, int], int](), 0
        for features in shown:
            rows, _, width = features.grid.shape[1:]
            kind = width, self._side // rows
            stages[kind] = stages.get(kind, 0) + features.layer.index - before
            before = features.layer.index
        facts: dict[str, Any] = {"supervision": "unknown"}
        for known in SPECS:
            if known.name == self.session.facts.get("backbone") and not known.is_floor:
                facts = {name: f"unknown (the file says {getattr(known, name)})" for name in _CLAIMED}
                facts |= {"seen": known.seen, "trained": known.trained}
        return BackboneSpec(
            name=reference,
            family="ONNX",
            repository=reference,
            origin=ONNX,
            stages=tuple(Stage(blocks, *kind) for kind, blocks in stages.items()),
            heads=None,
            prefix_tokens=int(first.cls is not None) if first.prefix is None else first.prefix.shape[1],
            has_cls=first.cls is not None,
            has_final=any(features.layer.tap == "final" for features in shown),
            input_size=self._side,
            fixed_size=True,
            shown=tuple(features.layer for features in shown),
            vectors=self._vectors,
            mean=self.session.mean,
            std=self.session.std,
            **facts,
        )


class OnnxLoader(ObjectLoader):
    """Loader of networks in ONNX files, which name themselves and what is known of them."""

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        return onnx_network(text).spec

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        network = onnx_network(spec.repository)
        facts = network.session.facts
        source = "as its metadata says" if "mean" in facts else "assumed, as for ImageNet"
        images = f"{images_in_words(spec)}, {source}"
        if network.session.takes_bytes:
            known = f" by {normalisation_of(spec)}, {source}" if "mean" in facts else ""
            images = f"images at {spec.input_size} px, which it normalises itself{known}"
        names = ("backbone", "revision", "layers", "poolings")
        claims = (f"{name} {shortened(facts[name])}" for name in names if name in facts)
        claimed = f"; the file says: {', '.join(claims)}" if "backbone" in facts else ""
        return f"{titled(spec)}: {shape_in_words(spec)}, of {some(network.used)}; {images}{claimed}"

    def made(self, reference: str, device: torch.device = CPU) -> Visitable:
        return onnx_network(reference, device)

    def identity(self, reference: str, backbone: Visitable) -> BackboneIdentity:
        return BackboneIdentity(backbone.revision, backbone.fingerprint)


def onnx_network(reference: str, device: torch.device = CPU) -> OnnxNetwork:
    """The network of ``onnx:FILE`` on a device, read again if the file has changed."""
    path = Path(reference.removeprefix(ONNX.mark))
    try:
        require_regular(path)
    except OSError as error:
        raise InputError(f"expected a file of ONNX at {path}: {first_line(error)}.") from error
    refuse_pages(path)
    return _opened(reference, path.absolute(), files_digest((path, *external_files(path))), device)


def external_files(path: Path) -> tuple[Path, ...]:
    """Files beside an ONNX file that hold its tensors, sorted; raises InputError if one is not there."""
    names = _external_names(path.absolute(), files_digest((path,)))
    files = [path.parent / name for name in names]
    for file in files:
        if not os.path.isfile(file):  # whatever its name
            name = shortened(file.name)  # as code: it may be any bytes
            raise InputError(f"{path} keeps tensors in {name}, which is not there; put it in its place.")
    return (*files,)


@lru_cache(maxsize=64)
def _external_names(path: Path, content: str) -> tuple[str, ...]:
    """Locations of external tensors in the bytes of a file, each a pair of strings as protobuf writes it."""
    if not path.stat().st_size:
        return ()
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as raw:
        names = set[bytes]()
        for match in _LOCATION.finditer(raw):
            length = sum((byte & 127) << 7 * index for index, byte in enumerate(match[1]))
            names.add(raw[match.end() : match.end() + length])
    return tuple(sorted(name.decode("utf-8", "surrogateescape") for name in names))


@lru_cache(maxsize=4)
@pass_context()
def _opened(reference: str, path: Path, content: str, device: torch.device) -> OnnxNetwork:
    try:
        return OnnxNetwork(reference, path, device)
    except MemoryError as error:
        raise InputError(f"{path} wants more memory than there is for three images.") from error
    except UnicodeDecodeError as error:  # onnxruntime checks no names
        raise InputError(f"{path} is damaged: its names are no text in UTF-8; fetch it again.") from error
