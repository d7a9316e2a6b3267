"""What a run is told."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from zoo.errors import InputError
from zoo.spec import SUBLAYER_TAPS, BackboneSpec, Interpolation, Layer, Tap

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
        taps: What is read of those blocks: ``block`` is their outputs (and ``final``), the others are
            sublayers of blocks from 1 on (`zoo.spec.Layer`).
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
    taps: tuple[Tap, ...] = ("block",)
    poolings: tuple[str, ...] = ("cls", "mean")
    store_dtype: Literal["float32", "float16"] = "float32"


TAPS: tuple[Tap, ...] = ("block", *SUBLAYER_TAPS)
"""Taps that can be asked for; ``final`` is asked for as a layer."""


def parse_taps(texts: Iterable[str]) -> tuple[Tap, ...]:
    """Taps of an option, each once in the order of `TAPS`; raises InputError for an unknown one."""
    chosen = set(texts)
    if not chosen or not chosen <= set(TAPS):
        raise InputError(f"taps are {', '.join(TAPS)}; found {', '.join(sorted(chosen)) or 'none'}")
    return tuple(tap for tap in TAPS if tap in chosen)


def parse_interpolation(text: str) -> Interpolation:
    """Rule of an option; raises InputError for an unknown one."""
    for rule in get_args(Interpolation):
        if rule == text:
            return cast("Interpolation", rule)
    raise InputError(f"--interpolation takes {' or '.join(get_args(Interpolation))}; found {text!r}")


def select_layers(text: str, spec: BackboneSpec, taps: tuple[Tap, ...] = ("block",)) -> tuple[Layer, ...]:
    """Layers of a backbone that options ask for, in order; raises InputError where one does not exist.

    Args:
        text: ``all``, or numbers, ranges and ``final`` separated by commas.
        spec: The backbone.
        taps: What to read of them; of the random floor, whose layers are draws, always the draws.
    """
    blocks = _select_blocks(text, spec)
    inside = [tap for tap in taps if tap in SUBLAYER_TAPS]
    if spec.is_floor or not inside:
        return blocks
    if spec.heads is None:
        raise InputError(f"{spec.name} has no {inside[0]} in its blocks: leave it or --taps out")
    indices = {layer.index for layer in blocks if layer.tap == "block"} - {0}
    layers = {Layer(index, tap) for index in indices for tap in inside}
    if not layers:
        raise InputError(f"layers {text!r} have no {inside[0]} in {spec.name}; blocks from 1 on have")
    layers |= set(blocks) if "block" in taps else set()
    return tuple(sorted(layers, key=lambda layer: layer.place))


def _select_blocks(text: str, spec: BackboneSpec) -> tuple[Layer, ...]:
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
            if index > spec.depth and not spec.is_floor:
                raise InputError(f"{spec.name} has layers 0 to {spec.depth}, there is no layer {index}")
            chosen.add(Layer(index))
    if spec.is_floor:  # its layers are draws, and all of them are the floor
        return _select_blocks("all", spec)
    if not chosen:
        raise InputError(f"layers {text!r} choose nothing of {spec.name}")
    return tuple(layer for layer in spec.layers if layer in chosen)
