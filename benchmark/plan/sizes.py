"""Input sizes of a run: each backbone at the sizes that it supports, several of them under separate names."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

from layerboard.benchmark.forms.request import InterpolationChoice
from layerboard.benchmark.plan.plan import Plan, view_for
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import OWN_POSITIONS, BackboneSpec, NameParts
from layerboard.zoo.view.geometry import nearest_multiple


def split_variants(patterns: Sequence[str]) -> list[NameParts]:
    """Names of backbones, split into name and suffixes; a directory keeps its name."""
    return [NameParts(text) if Path(text).is_dir() else NameParts.of(text) for text in patterns]


def at_size(spec: BackboneSpec, size: int | None) -> BackboneSpec:
    """A backbone at another input size, or at its own for None; raises InputError if it has a fixed size.

    The size is rounded to the nearest multiple of the patch size: halves go up, and it is at least one patch.
    """
    side = _nearest(spec, size)
    if spec.fixed_size and side != spec.input_size:
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} px only, not {side}: leave it or --input-size out"
        )
    return replace(spec, input_size=side)


def at_sizes(
    spec: BackboneSpec, sizes: Sequence[int | None]
) -> tuple[list[tuple[BackboneSpec, int | None]], list[str]]:
    """A backbone at each size, with the requested size, and in words what is left out.

    At its own size it keeps its name; at the others `zoo.spec.NameParts` gives it one. Raises InputError if
    it takes images of one size only, and none of these is it.
    """
    placed: dict[int, tuple[BackboneSpec, int | None]] = {}
    lines, unfit = [], []
    for size in sizes:
        side = _nearest(spec, size)
        if spec.fixed_size and side != spec.input_size:
            unfit.append(size)
        elif side in placed:
            lines.append(f"{spec.name}: {placed[side][1]} and {size} px are both {side} px to it, run once")
        else:
            name = spec.name if side == spec.input_size else str(NameParts(spec.name, side))
            placed[side] = replace(spec, name=name, input_size=side), size
    if not placed:
        at_size(spec, sizes[0])  # the reason is reported
    if unfit:
        left = " and ".join(f"{size}" for size in unfit)
        lines.append(f"{spec.name} takes images of {spec.input_size} px only: it is left out at {left} px")
    return list(placed.values()), lines


def _nearest(spec: BackboneSpec, size: int | None) -> int:
    return spec.input_size if size is None else nearest_multiple(size, spec.patch_size)


def shown_alike(plan: Plan) -> Iterator[str]:
    """Tasks whose protocol fixes the image size whatever the backbone's, if there are several sizes."""
    several = {(spec.entry, spec.input_size): spec for spec in plan.backbones}.values()
    pairs = [(spec, other) for spec, other in combinations(several, 2) if spec.entry == other.entry]
    names = [
        f"{task.entry.name} ({task.protocol})"
        for task in plan.tasks.every
        if pairs
        and task.sources
        and all(
            view_for(spec, source.view) == view_for(other, source.view)
            for spec, other in pairs
            for source in task.sources
        )
    ]
    for name in dict.fromkeys(names):
        yield f"{name}: images are shown alike at every input size, so its scores are the same"


def with_rule(spec: BackboneSpec, interpolation: InterpolationChoice) -> BackboneSpec:
    """A backbone with another rule for position embeddings, if it has any that the rule fits."""
    if interpolation == "auto" or spec.is_floor or not OWN_POSITIONS.isdisjoint(spec.model_types):
        return spec
    return replace(spec, interpolation=interpolation)
