"""Which layers a visitor asked for, in the order of the forward, and why a spec has not got one."""

from collections.abc import Collection, Sequence

from zoo.errors import InputError
from zoo.spec import BackboneSpec, Layer


def wanted_layers(spec: BackboneSpec, layers: Collection[Layer] | None) -> tuple[Layer, ...]:
    """The layers to show, each once, in the order of the forward; ``spec.layers`` if None."""
    return spec.layers if layers is None else tuple(sorted(set(layers), key=lambda layer: layer.place))


def require(refusal: str) -> None:
    """Raise InputError with the sentence of `zoo.features.Backbone.refusal`, unless it is empty."""
    if refusal:
        raise InputError(refusal)


def unknown_layer(spec: BackboneSpec, layers: Collection[Layer]) -> str:
    """Why a backbone of that spec lacks one of these layers, in a sentence; "" if it has them all."""
    missing = next((layer for layer in wanted_layers(spec, layers) if not spec.has(layer)), None)
    if missing is None:
        return ""
    if missing.tap == "probabilities":
        return _no_probabilities(spec, missing)
    names = ", ".join(str(layer) for layer in spec.layers)
    inside = f", and {in_words(spec.inside)} of every block" if spec.inside else ""
    return f"{spec.name} has no layer {missing}; its layers are {names}{inside}."


def in_words(taps: Sequence[str]) -> str:
    """Taps as a sentence lists them."""
    return " and ".join([", ".join(taps[:-1]), taps[-1]] if len(taps) > 1 else taps)


def _no_probabilities(spec: BackboneSpec, layer: Layer) -> str:
    if spec.checkpoint in ("module", "timm"):
        return f"{spec.name} is a network whose attention probabilities cannot be read."
    if spec.heads is None:
        return f"{spec.name} has no attention."
    first, last = Layer(1, "probabilities"), Layer(spec.depth, "probabilities")
    return f"{spec.name} has no attention probabilities of layer {layer}; it has those of {first} to {last}."
