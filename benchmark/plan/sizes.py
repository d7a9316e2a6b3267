"""Input sizes of a run: each backbone at those that it can take, several of them under names of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmark.plan.plan import Plan, view_for
from benchmark.request import InterpolationChoice
from tasks.base import Source
from zoo.errors import InputError
from zoo.spec import BackboneSpec, sized_name, split_size
from zoo.view.geometry import nearest_multiple


@dataclass(frozen=True)
class Sizes:
    """The input sizes that are asked for."""

    usual: tuple[int | None, ...] = (None,)  # in pixels, of each backbone that names none; None for its own
    # by name of an entry, the sizes that it was named with (``dino-b16@448px``)
    named: Mapping[str, tuple[int | None, ...]] | None = None

    def of(self, spec: BackboneSpec) -> tuple[int | None, ...]:
        """The sizes of one backbone; the random floor has all that any backbone has."""
        if self.named is None:
            return self.usual
        every = {size: None for sizes in self.named.values() for size in sizes}
        return tuple(every) if spec.is_floor else self.named.get(spec.name, self.usual)

    @property
    def apart(self) -> bool:
        """Whether names tell sizes: a run of one size calls its backbones as the registry does."""
        return self.named is not None or len(self.usual) > 1


@dataclass(frozen=True)
class Placed:
    """A backbone at an input size, and the size that was asked for."""

    spec: BackboneSpec
    asked: int | None

    @property
    def lines(self) -> Iterator[str]:
        """A sentence that the size had to be rounded, where it had to be."""
        spec = self.spec
        if self.asked not in (None, spec.input_size) and not spec.is_floor:
            yield (
                f"{spec.name}: images at {spec.input_size} px, the multiple of its patch size of "
                f"{spec.patch_size} px nearest to {self.asked}"
            )


def split_sizes(patterns: Sequence[str]) -> list[tuple[str, int | None]]:
    """Names of backbones and the input sizes that they end with; a directory is called as it is called."""
    split = {pattern: split_size(pattern) for pattern in patterns}
    return [
        split[pattern] if split[pattern][1] and not Path(pattern).is_dir() else (pattern, None)
        for pattern in patterns
    ]


def at_sizes(spec: BackboneSpec, sizes: Sizes) -> tuple[list[Placed], list[str]]:
    """A backbone once at each of its sizes, and in words what is left out.

    At its own size it keeps its name; at the others `zoo.spec.sized_name` gives it one, unless it is run at
    one size alone.

    Raises:
        InputError: It takes images of one size only, and none of these is it.
    """
    asked = sizes.of(spec)
    if not sizes.apart:
        return [Placed(replace(spec, input_size=_side(spec, asked[0])), asked[0])], []
    entries: dict[int, Placed] = {}
    lines, unfit = [], []
    for size in asked:
        side = _nearest(spec, size)
        if spec.fixed_size and side != spec.input_size:
            unfit.append(size)
        elif side in entries:
            lines.append(
                f"{spec.name}: {entries[side].asked} and {size} px are both {side} px to it, run once"
            )
        else:
            name = spec.name if side == spec.input_size else sized_name(spec.name, side)
            entries[side] = Placed(replace(spec, name=name, input_size=side), size)
    if not entries:
        _side(spec, asked[0])
    if unfit:
        left = " and ".join(f"{size}" for size in unfit)
        lines.append(f"{spec.name} takes images of {spec.input_size} px only: it is left out at {left} px")
    return list(entries.values()), lines


def shown_alike(plan: Plan) -> Iterator[str]:
    """Tasks whose protocol shows images at one size whatever the backbone's, where there are several."""
    sizes: dict[str, list[BackboneSpec]] = {}
    for spec in plan.backbones:
        sizes.setdefault(spec.entry, []).append(spec)
    several = [variants for variants in sizes.values() if len(variants) > 1]
    names = [
        f"{task.entry.name} ({task.protocol})"
        for task in plan.tasks.every
        if several and task.sources and all(_is_alike(variants, task.sources) for variants in several)
    ]
    for name in dict.fromkeys(names):
        yield f"{name}: images are shown alike at every input size, so its scores are the same"


def _is_alike(sizes: Sequence[BackboneSpec], sources: Sequence[Source]) -> bool:
    """Whether a backbone is shown the same at all of its sizes."""
    return all(len({view_for(spec, source.view) for spec in sizes}) == 1 for source in sources)


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
    return tuple(
        with_rule(replace(spec, input_size=_side(spec, input_size)), interpolation) for spec in specs
    )


def with_rule(spec: BackboneSpec, interpolation: InterpolationChoice) -> BackboneSpec:
    """A backbone with another rule for position embeddings; the random floor has none."""
    return spec if interpolation == "auto" or spec.is_floor else replace(spec, interpolation=interpolation)


def _nearest(spec: BackboneSpec, size: int | None) -> int:
    """The side in pixels at which a backbone can be run that is nearest to a size; its own for None."""
    return spec.input_size if size is None else nearest_multiple(size, spec.patch_size)


def _side(spec: BackboneSpec, size: int | None) -> int:
    """The same; raises InputError where it takes images of another size only."""
    side = _nearest(spec, size)
    if spec.fixed_size and side != spec.input_size:
        raise InputError(
            f"{spec.name} takes images of {spec.input_size} px only, not {side}: leave it or --input-size out"
        )
    return side
