"""Files of a finished run damaged one at a time: the next run must find it and end with the same records."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np

from layerboard.leaderboards.records.items import read_items
from tests.faults.counts import Count
from tests.faults.places import Reference, again, difference

KINDS: dict[str, str] = {
    "shards": "cache/features/*/*/*.safetensors",
    "records": "out/records/*/*.parquet",
    "items": "out/items/*/*.parquet",
    "arrays": "out/arrays/*/*.npz",
    "examples": "out/examples/*/*.npz",
    "thumbnails": "out/thumbnails/*.webp",
}
"""Files that a run leaves, by kind."""


def flip(path: Path, draw: random.Random) -> None:
    """Turn one bit over."""
    payload = bytearray(path.read_bytes())
    place = draw.randrange(8 * len(payload))
    payload[place // 8] ^= 1 << place % 8
    path.write_bytes(payload)


def truncate(path: Path, draw: random.Random) -> None:
    """Cut the end off."""
    payload = path.read_bytes()
    path.write_bytes(payload[: draw.randrange(len(payload))])


def remove(path: Path, draw: random.Random) -> None:
    """Take the file away."""
    del draw
    path.unlink()


def exchange(path: Path, draw: random.Random) -> None:
    """Put a file of the same kind in its place, of another backbone, task or number."""
    others = sorted({*path.parents[1].glob(f"*/*{path.suffix}")} - {path})
    path.unlink()
    other = draw.choice(others)
    # a shard has its checksum in its name
    shutil.copyfile(other, path.with_name(other.name) if path.suffix == ".safetensors" else path)


def crowd(path: Path, draw: random.Random) -> None:
    """Put a file of somebody else beside it, and take it away."""
    name = draw.choice(["._x", "notes"]) if path.suffix == ".safetensors" else "._x"
    path.with_name(name + path.suffix).write_bytes(b"mine")
    path.unlink()


WAYS: tuple[Callable[[Path, random.Random], None], ...] = (flip, flip, truncate, remove, exchange, crowd)


def damage_files(reference: Reference, folder: Path, times: int, seed: int = 0) -> list[Count]:
    """Damage one random file of each kind so many times, run again, and compare everything that is left.

    What is wanted: the same records, and files of every kind as they were.
    """
    draw, counts = random.Random(seed), []
    for kind, pattern in KINDS.items():
        count = Count(f"damaged {kind}")
        for number in range(times):
            place = folder / f"{kind}-{number}"
            shutil.copytree(reference.place, place)
            victim = draw.choice(sorted(place.glob(pattern)))
            way = draw.choice(WAYS)
            way(victim, draw)
            if kind == "shards":  # records that are there would be enough
                shutil.rmtree(place / "out" / "records")
            name = f"{way.__name__} {victim.relative_to(place)}"
            count.note(name, _problem(place, reference, victim.relative_to(place)))
            shutil.rmtree(place)
        counts.append(count)
    return counts


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
