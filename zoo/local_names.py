"""Names of backbones that are directories or files of this machine. Imports nothing heavy."""

import os
from collections.abc import Collection
from hashlib import blake2b

from layerboard.zoo.origin import origin_by_mark
from layerboard.zoo.spec import BackboneSpec


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
