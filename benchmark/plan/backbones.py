"""The backbones of a run as they are shown images: their input size, and what is said of those inferred."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmark.engines.progress import Reporter
from zoo.errors import InputError
from zoo.registry import all_specs
from zoo.spec import BackboneSpec, Interpolation
from zoo.view.resize import nearest_multiple


def at_size(
    specs: Sequence[BackboneSpec], input_size: int | None, interpolation: Interpolation
) -> tuple[BackboneSpec, ...]:
    """Backbones with another input size and rule for position embeddings.

    Args:
        specs: As they were found.
        input_size: Side in pixels, for each backbone rounded to the nearest multiple of its patch size
            (halves go up, one patch at least); their own if None.
        interpolation: For all that have absolute position embeddings; the others are as before.

    Raises:
        InputError: A backbone takes images of one size only, and it is another.
    """
    return tuple(_at_size(spec, input_size, interpolation) for spec in specs)


def _at_size(spec: BackboneSpec, input_size: int | None, interpolation: Interpolation) -> BackboneSpec:
    side = spec.input_size if input_size is None else nearest_multiple(input_size, spec.patch_size)
    if spec.fixed_size and side != spec.input_size:
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} px only, not {side}: leave it or --input-size out"
        )
    if spec.is_floor:
        return replace(spec, input_size=side)
    return replace(spec, input_size=side, interpolation=interpolation)


def introduce(
    specs: Sequence[BackboneSpec], input_size: int | None, report: Reporter, cache_dir: Path
) -> None:
    """Say what was inferred of backbones outside the registry, and which input sizes had to be rounded."""
    known = {spec.repository for spec in all_specs()} | {spec.name for spec in all_specs()}
    for spec in specs:
        if spec.name not in known and spec.repository not in known:
            from zoo.load.describe import describe  # brings torch along, as loading the backbone does

            report.say(describe(spec, cache_dir))
        if input_size not in (None, spec.input_size) and not spec.is_floor:
            report.say(
                f"{spec.name}: images at {spec.input_size} px, the multiple of its patch size of "
                f"{spec.patch_size} px nearest to {input_size}"
            )
