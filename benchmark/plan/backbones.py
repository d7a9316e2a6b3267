"""The backbones of a run, as they are shown images, and what is said of those inferred."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmark.engines.progress import Reporter
from benchmark.plan.layers import select_layers
from benchmark.plan.sets import check_sets
from benchmark.plan.suites import Suite
from benchmark.request import Request
from benchmark.request.request import InterpolationChoice
from zoo.errors import InputError
from zoo.registry import all_specs, find
from zoo.spec import BackboneSpec, CheckpointFormat
from zoo.view.resize import nearest_multiple


def find_backbones(request: Request, suite: Suite, report: Reporter) -> tuple[BackboneSpec, ...]:
    """The backbones asked for, and the random floor, as they are shown images; tells what was inferred.

    Raises:
        InputError: There is no such backbone, or no such layer of it, or it cannot have what is asked for.
    """
    specs = find(request.backbones or suite.backbones, cache_dir=request.cache)
    specs = tuple(with_weights(specs, request.weights))
    if request.floor and not any(spec.is_floor for spec in specs):
        specs = (*specs, floor_for(specs, suite))
    specs = at_size(specs, request.input_size, request.interpolation)
    introduce(specs, request.input_size, report, request.cache)
    for spec in specs:
        # a wrong layer is wrong usage, before any work
        check_sets(request.fuse, spec, select_layers(request.layers, spec, request.taps))
    return specs


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


def at_size(
    specs: Sequence[BackboneSpec], input_size: int | None, interpolation: InterpolationChoice
) -> tuple[BackboneSpec, ...]:
    """Backbones with another input size and rule for position embeddings.

    Args:
        specs: As they were found.
        input_size: Side in pixels, for each backbone rounded to the nearest multiple of its patch size
            (halves go up, one patch at least); their own if None.
        interpolation: For all that have absolute position embeddings, or ``auto`` for each one's own rule.

    Raises:
        InputError: A backbone takes images of one size only, and it is another.
    """
    return tuple(_at_size(spec, input_size, interpolation) for spec in specs)


def _at_size(spec: BackboneSpec, input_size: int | None, interpolation: InterpolationChoice) -> BackboneSpec:
    side = spec.input_size if input_size is None else nearest_multiple(input_size, spec.patch_size)
    if spec.fixed_size and side != spec.input_size:
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} px only, not {side}: leave it or --input-size out"
        )
    rule = spec.interpolation if interpolation == "auto" or spec.is_floor else interpolation
    return replace(spec, input_size=side, interpolation=rule)


def introduce(
    specs: Sequence[BackboneSpec], input_size: int | None, report: Reporter, cache_dir: Path
) -> None:
    """Say what was inferred of backbones outside the registry, and which input sizes had to be rounded."""
    known = {spec.repository for spec in all_specs()} | {spec.name for spec in all_specs()}
    for spec in specs:
        told = spec.checkpoint == "module"  # when it was made
        if not told and spec.name not in known and spec.repository not in known:
            from zoo.load.describe import describe  # brings torch along, as loading the backbone does

            report.say(describe(spec, cache_dir))
        if input_size not in (None, spec.input_size) and not spec.is_floor:
            report.say(
                f"{spec.name}: images at {spec.input_size} px, the multiple of its patch size of "
                f"{spec.patch_size} px nearest to {input_size}"
            )
