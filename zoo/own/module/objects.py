"""What a user's functions return: networks, or backbones that give features themselves, which are checked."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from layerboard.zoo import features
from layerboard.zoo.errors import InputError, shortened
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.layers import Cells, shapes_of
from layerboard.zoo.features.weights import without_weights
from layerboard.zoo.load.backbone import OriginLoader
from layerboard.zoo.load.checkpoint import files_digest
from layerboard.zoo.load.described import images_in_words, shape_in_words
from layerboard.zoo.own.module.checks import faults, require_own_features
from layerboard.zoo.own.module.network import ModuleLoader, NetworkCopy, given_network
from layerboard.zoo.own.module.options import ModuleOptions
from layerboard.zoo.references import current_directory, find_object
from layerboard.zoo.spec import BackboneSpec, Layer, Layers
from layerboard.zoo.spec.origin import FUNCTION, OBJECT

# Tolerance of the sum of a row of probabilities around 1: bfloat16 rounds each by up to 0.004 of itself.
ROW_TOLERANCE = 0.01
CPU = torch.device("cpu")

_ATTRIBUTES: dict[str, type] = {
    "spec": BackboneSpec,
    "revision": str,
    "fingerprint": str,
    "device": torch.device,
    "dtype": torch.dtype,
}


class ObjectLoader(OriginLoader):
    """Loader of Python objects, which are the backbones that functions ``module:function`` return."""

    def find(self, text: str, cache_dir: Path | None) -> BackboneSpec:
        given = _given_by(text)
        origin = FUNCTION if isinstance(given, NetworkCopy) else OBJECT
        return replace(given.spec, repository=text, origin=origin)

    def identify(self, spec: BackboneSpec, cache_dir: Path) -> features.BackboneIdentity:
        return self.identity(spec.repository, self.made(spec.repository))

    def load(self, spec: BackboneSpec, device: torch.device, cache_dir: Path) -> Backbone:
        backbone = self.made(spec.repository, device)
        dtype = str(backbone.dtype).removeprefix("torch.")
        for what, has, wants in (("device", backbone.device.type, device.type), ("dtype", dtype, spec.dtype)):
            if has != wants:
                raise InputError(
                    f"{spec.name} runs with {what} {has}, the run with {wants}; give --{what} {has}, or let "
                    f"{spec.repository} give a backbone for {wants}."
                )
        return OwnBackbone(spec, self.identity(spec.repository, backbone), backbone)

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        facts = f"{shape_in_words(spec)}; {images_in_words(spec)}"
        return f"{spec.name}: {facts}; all from the spec that {spec.repository} gives"

    def made(self, reference: str, device: torch.device = CPU) -> features.Visitable:
        """The backbone of that name, unchanged, on a device if it can choose; raises InputError if none."""
        del device
        given = _given_by(reference)
        assert not isinstance(given, NetworkCopy)  # its origin has another loader
        return given

    def identity(self, reference: str, backbone: features.Visitable) -> features.BackboneIdentity:
        """The identity that a backbone gives itself, and that of the file of its module."""
        file = vars(sys.modules[reference.partition(":")[0]]).get("__file__")
        fingerprint = backbone.fingerprint
        if file and Path(file).is_file():
            fingerprint += f"-{files_digest((Path(file),)).removeprefix('sha256:')}"
        return features.BackboneIdentity(backbone.revision, fingerprint)


class FunctionLoader(ModuleLoader):
    """Loader of networks of torch that functions ``module:function`` return, in each process anew."""

    def given(self, reference: str) -> NetworkCopy:
        given = _given_by(reference)
        assert isinstance(given, NetworkCopy)
        return given

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        return str(self.given(spec.repository))


@lru_cache(maxsize=64)
def _given_by(reference: str) -> features.Visitable | NetworkCopy:
    """The backbone that the function returns; a network of torch is read as `given_network` does.

    The module is looked for in the current directory and among those that are installed; the function is
    called without arguments, once per process. Raises InputError if there is no such function, if it fails,
    or if it returns neither a network nor another backbone (`zoo.features.Visitable`).
    """
    function = find_object(reference)
    if not callable(function):
        module, _, name = reference.partition(":")
        raise InputError(f"{reference}: module {module} has no function {name}.")
    with current_directory():
        try:
            backbone: Any = function()
        except Exception as error:
            raise InputError(f"{reference}() failed: {type(error).__name__}: {error}.") from error
    if isinstance(backbone, NetworkCopy):
        return backbone
    if isinstance(backbone, nn.Module) and not hasattr(backbone, "visit"):
        try:
            return given_network(backbone, ModuleOptions(name=reference.rpartition(":")[2]))
        except InputError as error:
            hint = "options are those of layerboard.from_module, whose result the function may return"
            raise InputError(f"{reference}: {error}; {hint}.") from error
    return _checked(reference, backbone)


def _checked(reference: str, backbone: Any) -> features.Visitable:  # noqa: ANN401  # what a user returns
    """An object that a function returned; raises InputError if it is no `zoo.features.Visitable`."""
    gives = f"{reference}() gives a {type(backbone).__name__}"
    for name, kind in _ATTRIBUTES.items():
        value = getattr(backbone, name, None)
        if not isinstance(value, kind) or value == "":
            raise InputError(
                f"{gives} that should have an attribute {name} of type {kind.__name__}; found {value!r}."
            )
    if not callable(getattr(backbone, "visit", None)):
        raise InputError(f"{gives} without a method visit.")
    checked: features.Visitable = backbone
    wrong = next(faults(checked.spec), "")
    if not wrong and _shows_attention(checked) and checked.spec.heads is None:
        wrong = "says nothing of heads, and the backbone has attention = True"
    if wrong:
        raise InputError(f"{reference}: its spec {checked.spec.name!r} {wrong}.")
    _require_own_features(reference, checked)
    return checked


def _require_own_features(reference: str, backbone: features.Visitable) -> None:
    """Raise InputError unless features of an image depend on nothing but the image."""
    identity = features.BackboneIdentity(backbone.revision, backbone.fingerprint)
    own = OwnBackbone(replace(backbone.spec, repository=reference), identity, backbone)

    def show(pixels: Tensor) -> dict[str, Tensor]:
        shown: dict[str, Tensor] = {}

        def keep(content: features.Shown) -> None:
            assert isinstance(content, features.LayerFeatures)
            tokens = content.grid.flatten(1, 2)
            parts = tokens if content.cls is None else torch.cat([content.cls[:, None], tokens], dim=1)
            shown[f"layer {content.layer}"] = parts.clone()

        try:
            own.visit(pixels, keep)
        except (InputError, MemoryError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {shortened(str(error))}"
            raise InputError(f"{reference}: visit failed on {len(pixels)} images: {reason}.") from error
        return shown

    require_own_features(f"the backbone of {reference}", show, backbone.spec.input_size)


class OwnBackbone(Backbone):
    """A user's backbone, whose features are checked against its spec.

    It is asked for attention probabilities only if it has a true attribute ``attention``, and for the inside
    of blocks only if its spec names it in ``taps``.
    """

    def __init__(
        self, spec: BackboneSpec, identity: features.BackboneIdentity, backbone: features.Visitable
    ) -> None:
        super().__init__(spec, identity, backbone.device)
        self._backbone = backbone
        self._summed: set[Layer] = set()

    def fields_refusal(self) -> str:
        lacks = f"{self.spec.name} gives no gradients; one that does has a method receptive_fields."
        return "" if callable(getattr(self._backbone, "receptive_fields", None)) else lacks

    def weights(self) -> features.Weights:
        give = getattr(self._backbone, "weights", None)
        if not callable(give):
            return without_weights(f"{self.spec.name} shows no weights; one that does has a method weights.")
        weights = give()
        if not isinstance(weights, features.Weights):
            kind = type(weights).__name__
            raise InputError(f"{self.spec.name}: weights() gives {kind}; it should be Weights.")
        return weights

    def _refused(self, layer: Layer) -> str:
        lacks = f"{self.spec.name} shows no attention probabilities; one that does has attention = True."
        return lacks if layer.tap == "probabilities" and not _shows_attention(self._backbone) else ""

    def _visit(self, pixels: Tensor, visitor: features.Visitor, wanted: Layers, cells: Cells) -> None:
        missing = list(wanted)

        def show(content: features.Shown) -> None:
            expected = missing[0] if missing else "none any more"
            if content.layer != expected:
                raise InputError(
                    f"{self.spec.name} shows layer {content.layer} where {expected} is expected: each layer "
                    "that is asked for once, in the order of the forward."
                )
            self._check(content, len(pixels), cells)
            del missing[0]
            visitor(content)

        self._backbone.visit(pixels, show, wanted)
        if missing:
            raise InputError(f"{self.spec.name} does not show layer {missing[0]}, which it was asked for.")

    def _fields(
        self,
        pixels: Tensor,
        wanted: Layers,
        channels: features.Channels,
        advance: Callable[[float], None],  # other people's code does not say how far it is
    ) -> tuple[features.ReceptiveField, ...]:
        del advance
        give: Callable[..., Iterable[features.ReceptiveField]] = getattr(self._backbone, "receptive_fields")  # noqa: B009
        fields, shape = tuple(give(pixels, wanted, channels)), pixels.shape[2:]
        for layer, field in zip_longest(wanted, fields):
            is_field = isinstance(field, features.ReceptiveField)
            if not is_field or (field.layer, field.strength.shape) != (layer, shape):
                raise InputError(
                    f"{self.spec.name}: receptive_fields() should give a ReceptiveField for each layer, here "
                    f"{layer or 'none any more'}, with a strength {list(shape)}; it gives "
                    f"{shortened(field)}."
                )
        return fields

    def _check(self, content: features.Shown, batch: int, cells: Cells) -> None:
        """Check shapes in every batch, and numbers, which make a GPU wait, in the first of each layer."""
        expected = features.AttentionMaps if content.layer.tap == "probabilities" else features.LayerFeatures
        if not isinstance(content, expected):
            raise InputError(
                f"{self.spec.name} shows layer {content.layer} as {type(content).__name__}; it should be "
                f"{expected.__name__}."
            )
        spec, layer = self.spec, content.layer
        facts: tuple[tuple[str, object, object], ...]
        if isinstance(content, features.LayerFeatures):
            verb, grid = "it is", tuple(content.grid.shape)
            shapes = shapes_of(spec, layer, cells, grid[-1])
            *size, width = next((shape for shape in shapes if grid == (batch, *shape)), shapes[0])
            cls = None if content.cls is None else tuple(content.cls.shape)
            facts = (
                ("grid [batch height width dim]", (batch, *size, width), grid),
                ("cls [batch dim]", (batch, width) if spec.has_cls else None, cls),
            )
        else:
            verb, tokens = "found", spec.prefix_tokens + cells[0] * cells[1]
            shape, wanted = tuple(content.probabilities.shape), (batch, spec.heads, tokens, tokens)
            facts = (
                ("probabilities [batch heads queries keys]", wanted, shape),
                ("prefix_tokens", spec.prefix_tokens, content.prefix_tokens),
                ("cells [rows columns]", cells, tuple(content.cells)),
            )
        for what, wants, has in facts:
            if has != wants:
                raise InputError(f"{spec.name}: {what} of layer {layer} should be {wants}; {verb} {has}.")
        if isinstance(content, features.AttentionMaps) and layer not in self._summed:
            _check_sums(spec, content)
            self._summed.add(layer)


def _shows_attention(backbone: features.Visitable) -> bool:
    return getattr(backbone, "attention", False) is True


def _check_sums(spec: BackboneSpec, maps: features.AttentionMaps) -> None:
    sums = maps.probabilities.sum(-1, dtype=torch.float32)
    worst, least = float(sums.flatten()[(sums - 1).abs().argmax()]), float(maps.probabilities.min())
    if not (abs(worst - 1) <= ROW_TOLERANCE and least >= 0):  # true for NaN, too
        raise InputError(
            f"{spec.name}: each row of the probabilities of layer {maps.layer} should be numbers from 0 on "
            f"that sum to 1; a row sums to {worst:.3g}, and the least number is {least:.3g}."
        )
