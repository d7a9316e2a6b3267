"""Files of a finished run damaged one at a time: the next run must find it and end with the same records."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from layerboard.leaderboards.records.items import read_items
from tests.faults.broken_bytes import flip, truncate
from tests.faults.places import Reference, again, difference, reference_in
from tests.faults.trials import Effort, Trial

KINDS: dict[str, str] = {
    "shards": "cache/features/*/*/*.safetensors",
    "records": "out/records/*/*.parquet",
    "items": "out/items/*/*.parquet",
    "arrays": "out/arrays/*/*.npz",
    "examples": "out/examples/*/*.npz",
    "thumbnails": "out/thumbnails/*.webp",
}
"""Files that a run leaves, by kind."""


WAYS = ("flip", "flip", "truncate", "remove", "exchange", "crowd")
"""Exchange: a file of the same kind, of another backbone, task or number. Crowd: one of somebody else."""


def damage(path: Path, draw: random.Random) -> str:
    """Damage a file in a way that is drawn; gives the way."""
    way = draw.choice(WAYS)
    is_shard = path.suffix == ".safetensors"  # which has its checksum in its name
    if change := {"flip": flip, "truncate": truncate}.get(way):
        path.write_bytes(change(path.read_bytes(), draw))
        return way
    others = sorted({*path.parents[1].glob(f"*/*{path.suffix}")} - {path})
    path.unlink()
    if way == "exchange":
        other = draw.choice(others)
        shutil.copyfile(other, path.with_name(other.name) if is_shard else path)
    elif way == "crowd":
        name = draw.choice(("._x", "notes")) if is_shard else "._x"
        path.with_name(name + path.suffix).write_bytes(b"mine")
    return way


def damage_files(folder: Path, effort: Effort) -> Iterator[Trial]:
    """Damage one random file of each kind, run again, and compare everything that is left.

    What is wanted: the same records, and files of every kind as they were.
    """
    reference, draw = reference_in(folder.parent), effort.draw()
    for kind, pattern in KINDS.items():
        for number in range(effort.times):
            place = folder / f"{kind}-{number}"
            shutil.copytree(reference.place, place)
            victim = draw.choice(sorted(place.glob(pattern)))
            way, file = damage(victim, draw), victim.relative_to(place)
            if kind == "shards":  # records that are there would be enough
                shutil.rmtree(place / "out" / "records")
            yield Trial(f"damaged {kind}", f"{way} {file}", _problem(place, reference, file))
            shutil.rmtree(place)


def _problem(place: Path, reference: Reference, victim: Path) -> str:
    try:
        again(place, reference.data)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]}"
    # a shard that is computed again beside other tasks may differ by rounding, and so in its name
    pattern = f"{victim.name.split('.')[0]}.*" if victim.suffix == ".safetensors" else victim.name
    if not any((place / victim).parent.glob(pattern)):
        return "the file was not written again"
    if {"items", "arrays", "examples", "thumbnails"} & {*victim.parts}:
        try:
            if _content(place / victim) != _content(reference.place / victim):
                return "the file is another one than before"
        except Exception as error:
            return f"the file was left damaged: {type(error).__name__}"
    return difference(place, reference)


def _content(path: Path) -> object:
    """What a file says, whatever its compression and times."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return {name: arrays[name].tobytes() for name in arrays.files}
    if path.suffix == ".parquet":
        return repr(sorted(read_items(path).items()))
    return path.read_bytes()
