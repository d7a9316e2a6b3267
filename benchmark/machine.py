"""Versions of the libraries and whether they can be imported, devices, and the room for the cache."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from typing import TYPE_CHECKING

from layerboard.benchmark.forms import parsers
from layerboard.zoo.errors import InputError, first_line
from layerboard.zoo.libraries import OURS

if TYPE_CHECKING:
    from packaging.requirements import Requirement

EXTRAS = ("altair", "heic", "timm", "onnx", "video", "ray")
MODULES = {
    "faiss-cpu": "faiss",
    "pillow": "PIL",
    "pyyaml": "yaml",
    "scikit-learn": "sklearn",
    "transformers": "transformers.modeling_utils",  # by itself it imports little
    "vl-convert-python": "vl_convert",
}
"""Modules that show whether a distribution works, where they have another name."""

LEAST_DISK = 2**30  # free bytes that a small run may need
IMPORTS = """
import importlib, sys
for name in sys.argv[1:]:
    reason = ""
    try:
        importlib.import_module(name)
    except BaseException as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    print(f"\\0{name}\\0{reason}\\0", flush=True)
"""
"""Code that tries to import each module and prints why it cannot be, "" if it can be."""


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
    needed = _requirements()
    modules = {
        each.name: MODULES.get(each.name.lower(), each.name.lower().replace("-", "_")) for each, _ in needed
    }
    reasons = _import_errors([*modules.values()])
    for requirement, extra in needed:
        yield _library(requirement, extra, reasons[modules[requirement.name]])
    if not reasons["torch"]:
        yield _devices()
    yield _cache()


def _requirements() -> "list[tuple[Requirement, str]]":
    """What this package needs here, then what its extras add, each with the name of its extra."""
    from packaging.requirements import Requirement

    every = [Requirement(line) for line in requires(OURS) or ()]
    needed: dict[str, tuple[Requirement, str]] = {}
    for extra in ("", *EXTRAS):
        for each in every:
            if each.marker is None or each.marker.evaluate({"extra": extra}):
                needed.setdefault(each.name, (each, extra))
    # needed by none of ours; if it does not fit torch, it breaks transformers
    return [*needed.values(), (Requirement("torchvision"), "timm")]


def _library(requirement: "Requirement", extra: str, reason: str) -> Diagnosis:
    """Whether a library is there in a version that is needed, and can be imported."""
    name, install = requirement.name, f"pip install '{requirement.name}{requirement.specifier}'"
    try:
        present = version(name)
    except PackageNotFoundError:
        how = f"pip install '{OURS}[{extra}]'" if extra else install
        return Diagnosis(name, f"is not installed ({how})", wrong=not extra)
    if not requirement.specifier.contains(present, prereleases=True):
        return Diagnosis(name, f"{present} is installed, and {requirement} is needed: {install}", wrong=True)
    return Diagnosis(name, f"{present} cannot be imported ({reason})" if reason else present, bool(reason))


def _import_errors(modules: Sequence[str]) -> Mapping[str, str]:
    """Why each module cannot be imported, "" if it can be, found in a process where a crash does no harm."""
    command = [sys.executable, "-c", IMPORTS, *modules]
    done = subprocess.run(command, capture_output=True, check=False)  # noqa: S603  # this Python
    answers = dict(re.findall(r"\0(.*?)\0(.*?)\0", done.stdout.decode(errors="replace")))
    end, tried = f"it ends Python with exit code {done.returncode}", len(answers)  # the next one ended it
    return {name: answers.get(name, end if i == tried else "not tried") for i, name in enumerate(modules)}


def _devices() -> Diagnosis:
    import torch

    built = f"torch is built for {f'CUDA {torch.version.cuda}' if torch.version.cuda else 'no CUDA'}"
    names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return Diagnosis("devices", f"{', '.join([f'{os.cpu_count()} CPU cores', *names])}; {built}")


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
