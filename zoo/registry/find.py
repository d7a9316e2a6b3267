"""All backbones by name, what a pattern, Hub id or directory means, and short names. It imports little."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from glob import glob, has_magic
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TypeVar

from layerboard.zoo.atomic import write_whole
from layerboard.zoo.entries import SPECS
from layerboard.zoo.errors import InputError, either, ensure, few_of
from layerboard.zoo.reading import decoded, read_regular
from layerboard.zoo.references import is_local
from layerboard.zoo.spec import NO_FILE, BackboneSpec
from layerboard.zoo.spec.origin import TRANSFORMERS, origin_by_mark, origin_of

Key = TypeVar("Key")

LOCAL_NAMES = "local-names.json"  # in the output folder
_UNUSABLE = re.compile(r"[^A-Za-z0-9._+-]+")  # in names of folders, for a name that all can write
_BY_NAME = {spec.name: spec for spec in SPECS}
_PLACES = {spec: number for number, spec in enumerate(SPECS)}


def all_specs() -> tuple[BackboneSpec, ...]:
    """Every backbone of the registry."""
    return SPECS


def find(patterns: Sequence[str], cache_dir: Path | None = None) -> tuple[BackboneSpec, ...]:
    """The backbones that a user asked for: first those of the registry in its order, then others as given.

    No backbone is given twice. Patterns, files and errors are those of `find_each`.
    """
    return registry_first(find_each(patterns, cache_dir).values())


def registry_first(groups: Iterable[Sequence[BackboneSpec]]) -> tuple[BackboneSpec, ...]:
    """All backbones of groups, each once: those of the registry in its order, then others as given."""
    every = dict.fromkeys(chain.from_iterable(groups))
    return tuple(sorted(every, key=lambda spec: _PLACES.get(spec, len(_PLACES))))


def find_each(
    patterns: Iterable[str], cache_dir: Path | None = None, known: Mapping[str, str] | None = None
) -> dict[str, tuple[BackboneSpec, ...]]:
    """The backbones that each pattern means.

    A pattern is a name, a name with ``*`` or ``?``, a Hub id (``facebook/dinov2-base``), a local directory in
    Hugging Face format, one of the first and third followed by ``@REVISION``, ``module:function`` for a
    Python object, ``timm:NAME`` or ``onnx:FILE``. Facts about a backbone outside the registry are read from
    its configuration, its object or its file; only this imports heavy libraries and asks the Hub. Files from
    the Hub are kept in ``cache_dir``; if None, only the Hub's own cache is used. ``known`` are names of local
    backbones that were given before, as `named_locally` takes them. Raises InputError if something matches
    nothing, or if two backbones have one name.
    """
    matches: dict[str, list[BackboneSpec]] = {}
    others: dict[str, BackboneSpec] = {}
    for pattern in patterns:
        matches[pattern] = [spec for name, spec in _BY_NAME.items() if fnmatchcase(name, pattern)]
        if not matches[pattern]:
            spec = _outside(pattern, cache_dir)
            path = spec.path
            if _BY_NAME.get(spec.name) != spec:
                spec, given = others.setdefault(path or spec.name, spec), spec
                twice = f"Two backbones are called '{spec.name}'; give one of them another name."
                ensure(spec == given or path, twice)
            matches[pattern] = [spec]
    named = dict(zip(others.values(), named_locally([*others.values()], known or {}), strict=True))
    return {pattern: tuple(named.get(spec, spec) for spec in specs) for pattern, specs in matches.items()}


def require_named(text: str) -> None:
    """Raise InputError if a pattern or name is that of no backbone, as far as nothing heavy has to know it.

    A Hub id, a directory, an object, a file or a network of timm is read when it is loaded.
    """
    if (origin := origin_of(text)) or is_local(text):
        if origin and origin.example and {*text} & {*"*?["}:
            raise InputError(f"{text!r} is a pattern; {origin.mark} takes a name, such as {origin.example}")
        return
    repository, at, revision = text.partition("@")
    known = _of_registry(repository)
    if known is not None and known.origin.supply and at:
        raise InputError(
            f"{known.name} has no revision '{revision}'; a size, a format and torch's resize are written "
            f"{known.name}@448px@bfloat16@fast-resize, or some of these in this order"
        )
    is_known = known is not None or "/" in repository or any(fnmatchcase(name, text) for name in _BY_NAME)
    if not is_known and not (has_magic(text) and glob(text)):
        close = get_close_matches(repository.lower(), _BY_NAME, n=3, cutoff=0.5)
        guess = f"did you mean {either(close)}?" if close else f"there are {few_of([*_BY_NAME])}."
        raise InputError(
            f"No backbone is called '{repository}'; {guess} `layerboard list backbones` has all; a "
            "Hub id reads owner/name, and a directory must exist."
        )


def _of_registry(name: str) -> BackboneSpec | None:
    """The backbone of that name or Hub id; None if the registry has none."""
    return _BY_NAME.get(name) or next((spec for spec in SPECS if name and spec.repository == name), None)


def _outside(text: str, cache_dir: Path | None) -> BackboneSpec:
    """A backbone that is no entry as it is; raises InputError if there is none, or if its name is taken."""
    require_named(text)
    origin = origin_of(text)
    if origin is None:
        repository, _, revision = (text, "", "") if is_local(text) else text.partition("@")
        if (known := _of_registry(repository)) is not None:
            name, file = f"{known.name}@{revision}", known.file if revision == known.revision else NO_FILE
            return replace(known, name=name, revision=revision, file=file) if revision else known
    from layerboard.zoo.load.backbone import loader_of  # imports torch

    spec = loader_of(origin or TRANSFORMERS).find(text, cache_dir)
    taken = f"The registry has a backbone of the name {spec.name!r}; give yours, {text}, another name."
    ensure(not origin or spec.name not in _BY_NAME, taken)
    return spec


def as_path(name: str, local: Collection[str]) -> str:
    """A name as commands and calls take it: a directory or file has a placeholder of its path before it."""
    mark = origin.mark if (origin := origin_by_mark(name)) else ""
    return f"{mark}PATH/TO/{name.removeprefix(mark)}" if name in local else name


def path_digest(path: str) -> str:
    """Digest of a path, by which it is known again where the path itself should not be written."""
    return blake2b(path.encode(errors="surrogateescape"), digest_size=8).hexdigest()


def named_locally(specs: Sequence[BackboneSpec], known: Mapping[str, str]) -> list[BackboneSpec]:
    """Backbones, of which those that a path alone names are called by its last folder.

    Of two alike the name has as many folders as tell them apart; ``known`` is that of `short_names`.
    """
    local = [spec for spec in specs if spec.name not in _BY_NAME and spec.path]
    paths = {spec: (spec.origin.mark, spec.path) for spec in local}
    names = short_names(paths, {spec.name for spec in specs if spec not in paths}, known)
    return [replace(spec, name=names.get(spec, spec.name)) for spec in specs]


def short_names(
    paths: Mapping[Key, tuple[str, str]], taken: Collection[str], known: Mapping[str, str]
) -> dict[Key, str]:
    """The shortest names that tell paths apart, by key: a mark, and as many of the last folders as it takes.

    ``paths`` are marks with absolute paths. No name is that of the registry or ``taken``; ``known`` are names
    that were given before, with the digests of their paths (`path_digest`).
    """
    taken = {*_BY_NAME, *taken}
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


def write_local_names(specs: Iterable[BackboneSpec], output: Path, series: Mapping[str, str]) -> None:
    """Keep the names of directories and files of this machine for later runs into the same folder.

    ``series`` are names of trainings by the paths of their folders.
    """
    before = read_local_names(output)
    paths = {spec.entry: spec.path for spec in specs if spec.entry not in _BY_NAME and spec.path}
    paths |= {name: path for path, name in series.items()}
    names = before | {name: path_digest(path) for name, path in paths.items()}
    if names != before:
        write_whole(output / LOCAL_NAMES, json.dumps(names, indent=1, sort_keys=True) + "\n")
