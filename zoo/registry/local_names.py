"""Names of backbones that are directories or files of this machine. Imports nothing heavy."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import TypeVar

from layerboard.zoo.atomic import write_whole
from layerboard.zoo.entries import SPECS
from layerboard.zoo.reading import decoded, read_regular
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import origin_by_mark

Key = TypeVar("Key")

LOCAL_NAMES = "local-names.json"  # in the output folder
_REGISTRY = {spec.name for spec in SPECS}
_UNUSABLE = re.compile(r"[^A-Za-z0-9._+-]+")  # in names of folders, for a name that all can write


def as_path(name: str, local: Collection[str]) -> str:
    """A name as commands and calls take it: a directory or file has a placeholder of its path before it."""
    mark = origin.mark if (origin := origin_by_mark(name)) else ""
    return f"{mark}PATH/TO/{name.removeprefix(mark)}" if name in local else name


def path_digest(path: str) -> str:
    """Digest of a path, by which it is known again where the path itself should not be written."""
    return blake2b(path.encode(errors="surrogateescape"), digest_size=8).hexdigest()


def named_locally(
    specs: Sequence[BackboneSpec], known: Mapping[str, str] | None = None
) -> list[BackboneSpec]:
    """Backbones, of which those that a path alone names are called by its last folder.

    Of two alike the name has as many folders as tell them apart. ``known`` are names that were given before,
    with the digests of their paths (`path_digest`).
    """
    local = [spec for spec in specs if spec.name not in _REGISTRY and spec.path]
    paths = {spec: (spec.origin.mark, spec.path) for spec in local}
    names = short_names(paths, {spec.name for spec in specs if spec not in paths}, known or {})
    return [replace(spec, name=names.get(spec, spec.name)) for spec in specs]


def short_names(
    paths: Mapping[Key, tuple[str, str]], taken: Collection[str], known: Mapping[str, str]
) -> dict[Key, str]:
    """The shortest names that tell paths apart, by key: a mark, and as many of the last folders as it takes.

    ``paths`` are marks with absolute paths. No name is that of the registry or ``taken``; ``known`` are names
    that were given before, with the digests of their paths (`path_digest`).
    """
    taken = {*_REGISTRY, *taken}
    before = {digest: name for name, digest in known.items() if name not in taken}
    names = {key: before.get(path_digest(path), "") for key, (_, path) in paths.items()}
    lengths = dict.fromkeys((key for key, name in names.items() if not name), 1)
    while lengths:
        for key, length in lengths.items():
            mark, path = paths[key]
            parts = [_UNUSABLE.sub("-", part) for part in Path(path).parts[1:]]
            last = "/".join(parts[-length:]) or "root"
            whole = f"-{path_digest(path)[: length - len(parts)]}" if length > len(parts) else ""
            names[key] = f"{mark}{last}{whole}"
        counts = Counter(names.values())
        unclear = [s for s in lengths if counts[names[s]] > 1 or names[s] in taken or names[s] in known]
        lengths = {key: lengths[key] + 1 for key in unclear}
    return names


def read_local_names(output: Path) -> dict[str, str]:
    """Names that earlier runs gave to directories and files of this machine, with digests of their paths."""
    try:
        return decoded(dict[str, str], read_regular(output / LOCAL_NAMES))
    except (OSError, ValueError):
        return {}


def write_local_names(
    specs: Iterable[BackboneSpec], output: Path, series: Mapping[str, str] | None = None
) -> None:
    """Keep the names of directories and files of this machine for later runs into the same folder.

    ``series`` are names of trainings by the paths of their folders.
    """
    before = read_local_names(output)
    paths = {spec.entry: spec.path for spec in specs if spec.entry not in _REGISTRY and spec.path}
    paths |= {name: path for path, name in (series or {}).items()}
    names = before | {name: path_digest(path) for name, path in paths.items()}
    if names != before:
        write_whole(output / LOCAL_NAMES, json.dumps(names, indent=1, sort_keys=True) + "\n")
