"""Versions of the libraries, devices, and the room for the cache."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version

from layerboard.benchmark.forms import parsers
from layerboard.zoo.errors import InputError, first_line
from layerboard.zoo.libraries import OURS

EXTRAS = ("heic", "timm", "onnx", "video", "ray")
LEAST_DISK = 2**30  # free bytes that a small run may need


@dataclass(frozen=True)
class Diagnosis:
    """What was looked at, a sentence about it, and whether something is wrong with it."""

    what: str
    sentence: str
    wrong: bool = False

    def __str__(self) -> str:
        return f"{'WRONG' if self.wrong else 'ok':<5}  {self.what}: {self.sentence}"


def diagnoses() -> Iterator[Diagnosis]:
    """What was found of the libraries, the devices and the cache, part by part."""
    yield Diagnosis(OURS, f"{version(OURS)}, Python {sys.version.split()[0]} on {sys.platform}")
    yield from _libraries()
    try:
        import torch
    except Exception as error:
        yield Diagnosis("devices", f"torch cannot be imported ({first_line(error)})", wrong=True)
    else:
        built = f"torch is built for {f'CUDA {torch.version.cuda}' if torch.version.cuda else 'no CUDA'}"
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        yield Diagnosis("devices", f"{', '.join([f'{os.cpu_count()} CPU cores', *names])}; {built}")
    yield _cache()


def _libraries() -> Iterator[Diagnosis]:
    """Whether each library that this package or one of its extras needs is there, in a version that fits."""
    from packaging.requirements import Requirement

    # needed by none of ours; if it does not fit torch, it breaks transformers
    every = [*map(Requirement, requires(OURS) or ()), Requirement("torchvision; extra == 'timm'")]
    needed: dict[str, tuple[Requirement, str]] = {}
    for extra in ("", *EXTRAS):
        for each in every:
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                needed.setdefault(each.name, (each, extra))
    for name, (each, extra) in needed.items():
        install = f"pip install '{OURS}[{extra}]'" if extra else f"pip install '{name}{each.specifier}'"
        try:
            present = version(name)
        except PackageNotFoundError:
            yield Diagnosis(name, f"is not installed ({install})", wrong=not extra)
            continue
        fits = each.specifier.contains(present, prereleases=True)
        needs = f"{present} is installed, and {name}{each.specifier} is needed: {install}"
        yield Diagnosis(name, present if fits else needs, wrong=not fits)


def _cache() -> Diagnosis:
    """Whether the cache, or the nearest folder above it that exists, can be written and has room."""
    remedy = "give --cache DIR, or set LAYERBOARD_CACHE"
    try:
        folder = parsers.default_cache()
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except (OSError, InputError) as error:
        return Diagnosis("cache", f"it cannot be written ({first_line(error)}); {remedy}", wrong=True)
    few = free < LEAST_DISK
    return Diagnosis("cache", f"{folder}, {free / 1e9:,.1f} GB are free{f'; {remedy}' if few else ''}", few)
