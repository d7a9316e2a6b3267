"""The backbones of a run, as they are shown images, and what is said of those inferred."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmark.engines.progress import Reporter
from benchmark.plan.layers import select_layers
from benchmark.plan.sizes import Placed, Sizes, at_sizes, split_sizes, with_rule
from benchmark.plan.suites import Suite
from benchmark.plan.tasks import check_sets
from benchmark.request import Request
from zoo.errors import InputError
from zoo.registry import all_specs, find
from zoo.spec import BackboneSpec, CheckpointFormat


def find_backbones(request: Request, suite: Suite, report: Reporter) -> tuple[BackboneSpec, ...]:
    """The backbones asked for, and the random floor, as they are shown images; tells what was inferred.

    Raises:
        InputError: There is no such backbone, or no such layer of it, or it cannot have what is asked for.
    """
    specs, sizes = _found(request.backbones or suite.backbones, request)
    specs = tuple(with_weights(specs, request.weights))
    if request.floor and not any(spec.is_floor for spec in specs):
        specs = (*specs, floor_for(specs, suite))
    placed = []
    for spec in specs:
        variants, lines = at_sizes(with_rule(spec, request.interpolation), sizes)
        placed += variants
        for line in lines:
            report.say(line)
    introduce(placed, report, request.cache)
    specs = tuple(entry.spec for entry in placed)
    for spec in specs:
        # a wrong layer is wrong usage, before any work
        check_sets(request.fuse, spec, select_layers(request.layers, spec, request.taps))
    return specs


def _found(patterns: Sequence[str], request: Request) -> tuple[tuple[BackboneSpec, ...], Sizes]:
    """The backbones that patterns stand for, and at which sizes; a pattern may end with one (``@448px``)."""
    split = split_sizes(patterns)
    specs = find(tuple(dict.fromkeys(pattern for pattern, _ in split)), cache_dir=request.cache)
    usual: tuple[int | None, ...] = request.input_size or (None,)
    if all(size is None for _, size in split):
        return specs, Sizes(usual)
    if request.input_size:
        raise InputError("--backbones names input sizes (NAME@448px); leave these or --input-size out")
    named: dict[str, dict[int | None, None]] = {}
    for pattern, size in split:
        for spec in find([pattern], cache_dir=request.cache):
            named.setdefault(spec.name, {})[size] = None
    return specs, Sizes(usual, {name: tuple(sizes) for name, sizes in named.items()})


def floor_for(specs: Sequence[BackboneSpec], suite: Suite) -> BackboneSpec:
    """The random floor of the input size that all backbones share, or else the suite's."""
    sizes = {spec.input_size for spec in specs}
    alike = [spec for spec in all_specs() if spec.is_floor and {spec.input_size} == sizes]
    return alike[0] if alike else next(spec for spec in all_specs() if spec.name == suite.floor)


def with_weights(specs: Sequence[BackboneSpec], weights: Mapping[str, Path]) -> list[BackboneSpec]:
    """Backbones whose files are replaced; raises InputError for a name or a path that is not there."""
    names = [spec.name for spec in specs]
    for name, path in weights.items():
        if name not in names:
            raise InputError(f"--weights names {name!r}, which is not run; it runs {', '.join(names)}")
        if not path.exists():
            raise InputError(f"expected the weights of {name} at {path}, which does not exist")
    return [_with_weights(spec, weights.get(spec.name)) for spec in specs]


def _with_weights(spec: BackboneSpec, path: Path | None) -> BackboneSpec:
    """A backbone with files of its own: a directory in Hugging Face format, or a file of the authors."""
    if path is None:
        return spec
    if spec.family == "random" or spec.checkpoint in ("object", "module"):
        raise InputError(f"--weights names {spec.name!r}, whose features come from no file")
    checkpoint: CheckpointFormat = "original" if path.is_file() else "transformers"
    if spec.checkpoint == "timm":
        checkpoint = "timm"
    return replace(spec, repository=str(path), revision=None, checkpoint=checkpoint, trained=True)


def introduce(placed: Sequence[Placed], report: Reporter, cache_dir: Path) -> None:
    """Say what was inferred of backbones outside the registry, and which input sizes had to be rounded."""
    known = {spec.repository for spec in all_specs()} | {spec.name for spec in all_specs()}
    for entry in placed:
        spec = entry.spec
        described = spec.checkpoint == "module"  # when it was made
        if not described and spec.entry not in known and spec.repository not in known:
            from zoo.load.infer import describe  # brings torch along, as loading the backbone does

            report.say(describe(spec, cache_dir))
        for line in entry.lines:
            report.say(line)
