"""What a run is told."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zoo.errors import InputError
from zoo.spec import BackboneSpec, Layer

Dtype = Literal["float32", "bfloat16", "float16"]


def default_cache() -> Path:
    """Folder for vectors, measurements and the mini suite's data, below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LAYERBOARD_CACHE") or Path(base) / "layerboard")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Options of a run that do not choose what is run.

    Attributes:
        output: Folder of records and tables.
        cache: Folder of everything that can be computed again.
        device: ``auto`` (CUDA where there is one), ``cpu``, ``cuda`` or ``cuda:1``.
        dtype: Dtype of the forward pass.
        batch_size: Images of the backbone's input size in a batch.
        workers: Decoding threads, and scoring threads.
        layers: ``all`` (blocks 1..depth and ``final``), or a list such as ``4,8-12,final``.
        poolings: Vectors that are kept.
        store_dtype: Dtype of stored vectors.
    """

    output: Path
    cache: Path
    device: str = "auto"
    dtype: Dtype = "float32"
    batch_size: int = 64
    workers: int = 2
    layers: str = "all"
    poolings: tuple[str, ...] = ("cls", "mean")
    store_dtype: Literal["float32", "float16"] = "float32"


def select_layers(text: str, spec: BackboneSpec) -> tuple[Layer, ...]:
    """Layers of a backbone that an option asks for, in order; raises InputError where one does not exist.

    Args:
        text: ``all``, or numbers, ranges and ``final`` separated by commas.
        spec: The backbone.
    """
    if text == "all":
        return tuple(layer for layer in spec.layers if layer.index > 0)
    chosen: set[Layer] = set()
    for part in text.split(","):
        part = part.strip()
        if part == "final":
            if spec.has_final:  # a ConvNet has no final norm: its last block stands for it
                chosen.add(Layer(spec.depth, "final"))
            continue
        first, _, last = part.partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise InputError(
                f"layers {text!r}: expected 'all' or a list such as '4,8-12,final', found {part!r}"
            )
        for index in range(int(first), int(last or first) + 1):
            if index > spec.depth and spec.family != "random":
                raise InputError(f"{spec.name} has layers 0 to {spec.depth}, there is no layer {index}")
            chosen.add(Layer(index))
    if spec.family == "random":  # its layers are draws, and all of them are the floor
        return select_layers("all", spec)
    if not chosen:
        raise InputError(f"layers {text!r} choose nothing of {spec.name}")
    return tuple(layer for layer in spec.layers if layer in chosen)
