"""The backbones of a run, as they are shown images, and messages about inferred ones."""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import Path

from layerboard.benchmark.engines.progress import Reporter
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.plan.layers import select_layers
from layerboard.benchmark.plan.sizes import at_sizes, split_variants, with_rule
from layerboard.benchmark.plan.suites import Suite
from layerboard.tasks.framework.sets import sets_of
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError
from layerboard.zoo.local_names import local_path, path_digest
from layerboard.zoo.references import split_part
from layerboard.zoo.registry.find import all_specs, find, named_locally
from layerboard.zoo.spec import BackboneSpec, Dtype, NameParts

LOCAL_NAMES = "local-names.json"  # in the output folder
_LOG = logging.getLogger(__name__)

Way = tuple[Dtype, bool]  # dtype, and whether torch resizes the images
Ways = Mapping[Way, tuple[int | None, ...]]  # input sizes; None for the backbone's own


def find_backbones(request: Request, suite: Suite, report: Reporter) -> tuple[BackboneSpec, ...]:
    """The requested backbones and the floors, as they are shown images; reports what was inferred.

    Raises InputError for an unknown backbone or layer, or for options that a backbone does not support.
    """
    specs, named = _found(request.backbones or suite.backbones, request)
    specs = with_weights(specs, request.weights)
    if request.floor and not any(spec.is_floor for spec in specs):
        specs += _floors_for(specs, suite)
    usual: Ways = dict.fromkeys(product(request.dtype, _resizings(request)), request.input_size or (None,))
    every = [*named.values()] or [usual]
    dtypes = dict.fromkeys(dtype for ways in every for dtype, _ in ways)
    # the floors have all sizes of the backbones, in one dtype
    sizes = (*dict.fromkeys(chain(*(chain(*each.values()) for each in every))),)
    floors: Ways = {(next(iter(dtypes)), False): sizes}
    placed: list[tuple[BackboneSpec, int | None]] = []
    for spec in (with_rule(spec, request.interpolation) for spec in specs):
        ways = floors if spec.is_floor else named.get(spec.name, usual)
        for (dtype, fast), sizes in ways.items():
            variants, lines = at_sizes(spec, sizes)
            # a name without a format means float32, in this run and in all others into its folder
            named_dtype = None if dtype == "float32" or spec.is_floor else dtype
            for each, size in variants:
                name = str(NameParts(each.name, dtype=named_dtype, fast_resize=fast))
                placed.append((replace(each, name=name, dtype=dtype, fast_resize=fast), size))
            for line in lines:
                report.say(line)
    for spec, asked in {(spec.entry, spec.input_size): (spec, asked) for spec, asked in placed}.values():
        _introduce(spec, asked, report, request.cache)
    for spec, _ in placed:
        # wrong layers are wrong usage, reported before any work
        layers = select_layers(request.layers, spec, request.taps)
        for name in request.fuse:
            if not spec.is_floor and not sets_of([name], spec.depth, layers):
                raise InputError(
                    f"--fuse {name} needs blocks of {spec.name} that are not scored: at least two of its "
                    f"{spec.depth}, and all of a set; leave --layers and --taps out, or that name"
                )
    return tuple(spec for spec, _ in placed)


def _found(patterns: Sequence[str], request: Request) -> tuple[Sequence[BackboneSpec], dict[str, Ways]]:
    """The backbones that match patterns, and by name their suffixes (``@448px``, ``@bfloat16``)."""
    split = split_variants(patterns)
    entries = find(tuple(dict.fromkeys(parts.entry for parts in split)), cache_dir=request.cache)
    specs = named_locally(entries, read_local_names(request.output))
    local = {path: spec.name for spec in specs if (path := local_path(spec))}
    if not any(ends for parts in split for ends in parts[1:]):
        return specs, {}
    if request.input_size and any(parts.input_size for parts in split):
        raise InputError("--backbones names input sizes (NAME@448px); leave these or --input-size out")
    if request.dtype != ("float32",) and any(parts.dtype for parts in split):
        raise InputError("a backbone's name gives a format (NAME@bfloat16); leave it or --dtype out")
    if request.fast_resize and any(parts.fast_resize for parts in split):
        raise InputError("--backbones names NAME@fast-resize; leave these or --fast-resize out")
    named: dict[str, dict[Way, tuple[int | None, ...]]] = {}
    for pattern, size, dtype, fast in split:
        for spec in find([pattern], cache_dir=request.cache):
            ways = named.setdefault(local.get(local_path(spec), spec.name), {})
            for way in product([dtype] if dtype else request.dtype, [True] if fast else _resizings(request)):
                sizes = (size,) if size else request.input_size or (None,)
                ways[way] = (*dict.fromkeys((*ways.get(way, ()), *sizes)),)
    return specs, {**named}


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
    registry = {spec.name for spec in all_specs()}
    paths = {spec.entry: path for spec in specs if spec.entry not in registry and (path := local_path(spec))}
    names = before | {name: path_digest(path) for name, path in paths.items()}
    if names != before:
        write_whole(output / LOCAL_NAMES, json.dumps(names, indent=1, sort_keys=True) + "\n")


def _resizings(request: Request) -> tuple[bool, ...]:
    """Whether torch resizes images, for backbones whose names do not say."""
    return (False, True) if request.fast_resize else (False,)


def _floors_for(specs: Sequence[BackboneSpec], suite: Suite) -> list[BackboneSpec]:
    """The floors at the input size that all backbones share, or else those of the suite."""
    sizes = {spec.input_size for spec in specs}
    floors = [spec for spec in all_specs() if spec.is_floor]
    alike = [spec for spec in floors if {spec.input_size} == sizes]
    return alike or [spec for spec in floors if spec.name in suite.floors]


def with_weights(specs: Sequence[BackboneSpec], weights: Mapping[str, Path]) -> list[BackboneSpec]:
    """Backbones with given weights: a directory in Hugging Face format, or a file of the authors.

    A line says which network is taken from a file that holds several, unless ``FILE#LABEL`` names it. Raises
    InputError if a name is not among them, if a path does not exist, or if a floor has no weights.
    """
    by_name = {spec.name: spec for spec in specs}
    if weights:
        from layerboard.zoo.load.backbone import loader_of  # imports torch, as loading the backbone does
    for name, path in weights.items():
        if name not in by_name:
            raise InputError(f"--weights names {name!r}, which is not run; it runs {', '.join(by_name)}")
        file, _ = split_part(str(path))
        if not file.exists():
            raise InputError(f"expected the weights of {name} at {path}, which does not exist")
        spec = by_name[name]
        if not spec.origin.takes_weights:
            raise InputError(f"--weights names {name!r}, whose features come from no file")
        by_name[name], line = loader_of(spec.origin).with_weights(spec, path)
        if line:
            _LOG.warning(line)
    return list(by_name.values())


def _introduce(spec: BackboneSpec, asked: int | None, report: Reporter, cache_dir: Path) -> None:
    """Report what was inferred about a backbone outside the registry, and a rounded input size."""
    known = {name for spec in all_specs() for name in (spec.repository, spec.name)}
    if spec.entry not in known and spec.repository not in known:
        from layerboard.zoo.load.backbone import (
            describe_backbone,  # imports torch, as loading the backbone does
        )

        if facts := describe_backbone(spec, cache_dir):
            report.say(facts)
    if asked not in (None, spec.input_size) and not spec.is_floor:
        report.say(
            f"{spec.name}: images at {spec.input_size} px, the multiple of its patch size of "
            f"{spec.patch_size} px nearest to {asked}"
        )
