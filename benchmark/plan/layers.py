"""Selection of layers of a backbone by options."""

from layerboard.benchmark.forms.parsers import FINAL, comma_separated, ranges_of
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import SUBLAYER_TAPS, BackboneSpec, Layer, Tap


def select_layers(text: str, spec: BackboneSpec, taps: tuple[Tap, ...] = ("block",)) -> tuple[Layer, ...]:
    """The requested layers of a backbone, in order; raises InputError if one does not exist.

    ``text`` is ``all``, or numbers, ranges and ``final`` separated by commas; ``taps`` say what to read of
    each. For the random floor, whose layers are draws, it is always the draws.
    """
    blocks = _select_blocks(text, spec)
    inside = [tap for tap in taps if tap in SUBLAYER_TAPS]
    if spec.is_floor or not inside:
        return blocks
    if missing := [tap for tap in inside if tap not in spec.inside]:
        raise InputError(f"{spec.name} has no {missing[0]} in its blocks: leave it or --taps out")
    indices = {layer.index for layer in blocks if layer.tap == "block"} - {0}
    layers = {Layer(index, tap) for index in indices for tap in inside}
    if not layers:
        raise InputError(f"layers {text!r} have no {inside[0]} in {spec.name}; blocks from 1 on have")
    layers |= set(blocks) if "block" in taps else set()
    return tuple(sorted(layers, key=lambda layer: layer.place))


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
