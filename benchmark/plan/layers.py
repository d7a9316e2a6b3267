"""Selection of layers of a backbone by options."""

from collections.abc import Sequence
from functools import partial
from itertools import count

from layerboard.benchmark.forms.parsers import FINAL, comma_separated, ranges_of
from layerboard.zoo.errors import InputError, ensure, some
from layerboard.zoo.spec import NORMED, READ_TAPS, BackboneSpec, Layer, Tap


def select_layers(text: str, spec: BackboneSpec, taps: tuple[Tap, ...] = ("block",)) -> tuple[Layer, ...]:
    """The requested layers of a backbone, in order; raises InputError if one does not exist.

    ``text`` is ``all``, or numbers, ranges and ``final`` separated by commas; ``taps`` say what to read of
    each, as far as the backbone has it (`taps_of`). For the random floor, whose layers are draws, it is
    always the draws.
    """
    blocks, taps = _select_blocks(text, spec), taps_of(spec, taps)
    inside = [tap for tap in taps if tap in READ_TAPS]
    if not inside and taps:
        return blocks
    ensure(taps, f"{spec.name} has none of the taps asked for: leave it or --taps out")
    indices = {layer.index for layer in blocks if layer.tap == "block"} - {0}
    every = (Layer(index, tap) for index in indices for tap in inside)
    layers = {layer for layer in every if spec.has(layer)}
    if not layers:
        first = next(layer.index for layer in map(partial(Layer, tap=inside[0]), count(1)) if spec.has(layer))
        raise InputError(f"layers {text!r} have no {inside[0]} in {spec.name}; blocks from {first} on have")
    layers |= set(blocks) if "block" in taps else set()
    return tuple(sorted(layers, key=lambda layer: layer.place))


def taps_of(spec: BackboneSpec, taps: tuple[Tap, ...]) -> tuple[Tap, ...]:
    """The taps among some that a backbone has, in their order; of the random floor, its draws alone."""
    if spec.is_floor:
        return ("block",)
    return tuple(tap for tap in taps if tap not in READ_TAPS or tap in spec.read)


def with_taps(specs: Sequence[BackboneSpec], taps: tuple[Tap, ...]) -> tuple[list[BackboneSpec], list[str]]:
    """The backbones that have any of some taps, and in words which of these others lack.

    Raises InputError for a tap that no backbone has, with those that there are.
    """
    own = {spec.name: taps_of(spec, taps) for spec in specs if not spec.is_floor}
    reasons: dict[str, str] = {NORMED: "no final norm is known"}
    had = {"block"}.union(*(spec.read for spec in specs if spec.name in own))
    if unknown := [tap for tap in taps if own and tap not in had]:
        known = ", ".join(["block", *(tap for tap in READ_TAPS if tap in had)])
        why = f", as {reasons[unknown[0]]}" if unknown[0] in reasons else ""
        raise InputError(
            f"no block of {some(own)} has the tap {unknown[0]}{why}; --taps takes {known} of these"
        )
    lacking: dict[tuple[str, bool], list[str]] = {}
    for name, there in own.items():
        if missing := ", ".join(tap for tap in taps if tap not in there):
            lacking.setdefault((missing, bool(there)), []).append(name)
    lines = [
        f"left out: {missing} of {some(names)}: {reasons.get(missing, 'no such tap')}"
        if partly
        else f"left out: {some(names)}, without {missing}"
        for (missing, partly), names in lacking.items()
    ]
    return [spec for spec in specs if own.get(spec.name, taps)], lines


def _select_blocks(text: str, spec: BackboneSpec) -> tuple[Layer, ...]:
    if text == "all" or spec.is_floor:  # the layers of a floor are draws, and all of them make it
        return tuple(layer for layer in spec.layers if layer.index > 0)
    chosen: set[Layer] = set()
    for first, last in ranges_of(text):
        for index in range(first, last + 1):
            if index > spec.depth:
                raise InputError(f"{spec.name} has layers 0 to {spec.depth}, there is no layer {index}")
            chosen.add(Layer(index))
    if FINAL in comma_separated(text) and spec.has_final:  # a ConvNet has none
        chosen.add(Layer(spec.depth, "final"))
    layers = tuple(layer for layer in spec.layers if layer in chosen)
    if not layers:
        lacks = "has no final norm, and so no layer 'final'" if "final" in text else f"has none of {text!r}"
        raise InputError(f"layers: {spec.name} {lacks}; its last block is {spec.depth}: give that number")
    return layers
