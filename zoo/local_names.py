"""Names of backbones that are directories or files of this machine. Imports nothing heavy."""

import os
import re
from collections import Counter
from collections.abc import Collection, Mapping
from hashlib import blake2b
from pathlib import Path

from layerboard.zoo.origin import origin_by_mark
from layerboard.zoo.spec import BackboneSpec

_UNUSABLE = re.compile(r"[^A-Za-z0-9._+-]+")  # in names of folders, for a name that all can write


def local_path(spec: BackboneSpec) -> str:
    """The whole path of a backbone that is a directory or an ONNX file of this machine; "" for any other."""
    mark = spec.origin.mark
    is_path = spec.origin.has_path and (mark or os.path.isdir(spec.repository))
    return os.path.abspath(spec.repository.removeprefix(mark)) if is_path else ""


def as_path(name: str, local: Collection[str]) -> str:
    """A name as commands and calls take it: a directory or file has a placeholder of its path before it."""
    mark = origin.mark if (origin := origin_by_mark(name)) else ""
    return f"{mark}PATH/TO/{name.removeprefix(mark)}" if name in local else name


def path_digest(path: str) -> str:
    """Digest of a path, by which it is known again where the path itself should not be written."""
    return blake2b(path.encode(errors="surrogateescape"), digest_size=8).hexdigest()


def with_local_names(
    paths: Mapping[BackboneSpec, str], taken: Collection[str], known: Mapping[str, str]
) -> dict[BackboneSpec, str]:
    """Names of backbones with these paths: the last folder, of two alike with as many as tell them apart.

    None is one of the ``taken``; ``known`` are names that were given before, by digests of their paths.
    """
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
    return names
