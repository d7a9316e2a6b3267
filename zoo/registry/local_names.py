"""Names of backbones that are directories or files of this machine. Imports nothing heavy."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from layerboard.zoo.atomic import write_whole
from layerboard.zoo.entries import SPECS
from layerboard.zoo.spec import BackboneSpec
from layerboard.zoo.spec.origin import origin_by_mark

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
    paths = {spec: spec.path for spec in specs if spec.name not in _REGISTRY and spec.path}
    taken = {*_REGISTRY, *(spec.name for spec in specs if spec not in paths)}
    known = known or {}
    before = {digest: name for name, digest in known.items() if name not in taken}
    names = {spec: before.get(path_digest(path), "") for spec, path in paths.items()}
    lengths = dict.fromkeys((spec for spec, name in names.items() if not name), 1)
    while lengths:
        for spec, length in lengths.items():
            parts = [_UNUSABLE.sub("-", part) for part in Path(paths[spec]).parts[1:]]
            last = "/".join(parts[-length:]) or "root"
            whole = f"-{path_digest(paths[spec])[: length - len(parts)]}" if length > len(parts) else ""
            names[spec] = f"{spec.origin.mark}{last}{whole}"
        counts = Counter(names.values())
        unclear = [s for s in lengths if counts[names[s]] > 1 or names[s] in taken or names[s] in known]
        lengths = {spec: lengths[spec] + 1 for spec in unclear}
    return [replace(spec, name=names.get(spec, spec.name)) for spec in specs]


def read_local_names(output: Path) -> dict[str, str]:
    """Names that earlier runs gave to directories and files of this machine, with digests of their paths."""
    try:
        content = json.loads((output / LOCAL_NAMES).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in content.items()} if isinstance(content, dict) else {}


def write_local_names(specs: Iterable[BackboneSpec], output: Path) -> None:
    """Keep the names of directories and files of this machine for later runs into the same folder."""
    before = read_local_names(output)
    paths = {spec.entry: spec.path for spec in specs if spec.entry not in _REGISTRY and spec.path}
    names = before | {name: path_digest(path) for name, path in paths.items()}
    if names != before:
        write_whole(output / LOCAL_NAMES, json.dumps(names, indent=1, sort_keys=True) + "\n")
