"""What a run is told."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast, get_args

from zoo.errors import InputError
from zoo.spec import SUBLAYER_TAPS, Interpolation, Tap

Dtype = Literal["float32", "bfloat16", "float16"]


def default_cache() -> Path:
    """Folder for vectors, measurements and the mini suite's data, below the user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("LAYERBOARD_CACHE") or Path(base) / "layerboard")


@dataclass(frozen=True, kw_only=True)
class Request:
    """Options of a run.

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
    suite: str | None = None
    backbones: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    data: Path | None = None
    images: str | None = None
    limit: int | None = None
    floor: bool = True
    protocol: str | None = None
    weights: Mapping[str, Path] = field(default_factory=dict)
    input_size: int | None = None
    interpolation: Interpolation = "huggingface"


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


def default_workers() -> int:
    """Threads for decoding and scoring: the processors that this process may use, at most 16."""
    return min(16, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
