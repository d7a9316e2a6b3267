"""What a user's functions return: networks, or backbones that give features themselves, which are checked."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, get_type_hints

import torch
from torch import Tensor, nn

from layerboard.zoo import features
from layerboard.zoo.errors import InputError, ensure, shortened
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.layers import Cells, shapes_of
from layerboard.zoo.features.pass_context import PassLock
from layerboard.zoo.features.weights import without_weights
from layerboard.zoo.load.backbone import OriginLoader
from layerboard.zoo.load.checkpoint import files_digest
from layerboard.zoo.load.described import images_in_words, shape_in_words
from layerboard.zoo.own.module.network import CPU, ModuleLoader, NetworkCopy, given_network
from layerboard.zoo.own.module.options import ModuleOptions, faults
from layerboard.zoo.own.module.probe import probe, require_own_features
from layerboard.zoo.references import current_directory, find_object
from layerboard.zoo.spec import BackboneSpec, Layer, Layers
from layerboard.zoo.spec.origin import FUNCTION, OBJECT

_BY_MODULE = "a network of torch does, by layerboard.from_module"
_of_objects = PassLock()  # of all: several backbones may be of one object, which may share what it likes

_ATTRIBUTES: dict[str, Any] = {**get_type_hints(features.Visitable), "visit": Callable}


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
        """The identity that a backbone gives itself, of the file of its module, and of what it computes."""
        file = vars(sys.modules[reference.partition(":")[0]]).get("__file__")
        fingerprint = backbone.fingerprint
        if file and Path(file).is_file():
            fingerprint += f"-{files_digest((Path(file),)).removeprefix('sha256:')}"
        identity = features.BackboneIdentity(backbone.revision, fingerprint)
        computed = probe(OwnBackbone(replace(backbone.spec, repository=reference), identity, backbone))
        return replace(identity, fingerprint=f"{fingerprint}-{computed.hex()[:16]}")


class FunctionLoader(ModuleLoader):
    """Loader of networks of torch that functions ``module:function`` return, in each process anew."""

    def given(self, reference: str) -> NetworkCopy:
        given = _given_by(reference)
        assert isinstance(given, NetworkCopy)
        return given

    def describe(self, spec: BackboneSpec, cache_dir: Path | None) -> str:
        return str(self.given(spec.repository))


def _given_by(reference: str) -> features.Visitable | NetworkCopy:
    """The backbone of that name; a network that stands in place of a function is read each time anew.

    The module is looked for in the current directory and among those that are installed. Raises InputError
    if there is none of that name, and as `_made_by`.
    """
    named = find_object(reference)
    if isinstance(named, nn.Module | NetworkCopy):
        return _read(reference, named)
    return _made_by(reference, named)


@lru_cache(maxsize=64)
def _made_by(reference: str, function: object) -> features.Visitable | NetworkCopy:
    """The backbone that a function returns, which is called without arguments, once per process.

    Raises InputError if it is no function, if it fails, or if it returns neither a network nor another
    backbone (`zoo.features.Visitable`).
    """
    if not callable(function):
        module, _, name = reference.partition(":")
        raise InputError(f"{reference}: module {module} has no function {name}.")
    with current_directory():
        try:
            backbone: Any = function()
        except Exception as error:
            raise InputError(f"{reference}() failed: {type(error).__name__}: {error}.") from error
    return _read(reference, backbone)


def _read(reference: str, backbone: Any) -> features.Visitable | NetworkCopy:  # noqa: ANN401
    """What a user gives as a backbone; a network of torch is read as `given_network` does."""
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
            has = f"should have an attribute {name} of type {kind.__name__}; found {value!r}."
            raise InputError(f"{gives} that {has}")
    checked: features.Visitable = backbone
    wrong = next(faults(checked.spec), "")
    if not wrong and checked.spec.taps:
        wrong = f"names taps, and an object shows the outputs of its blocks alone; {_BY_MODULE}"
    ensure(not wrong, f"{reference}: its spec {checked.spec.name!r} {wrong}.")
    identity = features.BackboneIdentity(checked.revision, checked.fingerprint)
    own = OwnBackbone(replace(checked.spec, repository=reference), identity, checked)
    try:
        require_own_features(own, f"the backbone of {reference}")
    except (InputError, MemoryError):
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {shortened(str(error))}"
        raise InputError(f"{reference}: visit failed on one image, or on two: {reason}.") from error
    return checked


class OwnBackbone(Backbone):
    """A user's backbone, whose features are checked against its spec: outputs of blocks, and nothing else."""

    def __init__(
        self, spec: BackboneSpec, identity: features.BackboneIdentity, backbone: features.Visitable
    ) -> None:
        super().__init__(spec, identity, backbone.device)
        self._backbone, self._lock = backbone, _of_objects

    def fields_refusal(self) -> str:
        return f"{self.spec.name} gives no gradients; {_BY_MODULE}."

    def weights(self) -> features.Weights:
        return without_weights(f"{self.spec.name} shows no weights; {_BY_MODULE}.")

    def _refused(self, layer: Layer) -> str:
        lacks = f"{self.spec.name} shows no attention probabilities; {_BY_MODULE}."
        return lacks if layer.tap == "probabilities" else ""

    def _visit(self, pixels: Tensor, visitor: features.Visitor, wanted: Layers, cells: Cells) -> None:
        missing = [*wanted]

        def show(content: features.Shown) -> None:
            expected = missing.pop(0) if missing else "none any more"
            self._require("the next layer that visit shows", expected, content.layer)
            self._check(content, len(pixels), cells)
            visitor(content)

        self._backbone.visit(pixels, show, wanted)
        if missing:
            raise InputError(f"{self.spec.name} does not show layer {missing[0]}, which it was asked for.")

    def _check(self, shown: features.Shown, batch: int, cells: Cells) -> None:
        """Raise InputError unless the features of a layer have the shapes that the spec promises."""
        spec, layer, kind = self.spec, shown.layer, features.LayerFeatures
        self._require(f"what visit shows of layer {layer}", kind.__name__, type(shown).__name__)
        assert isinstance(shown, kind)
        grid, cls = tuple(shown.grid.shape), None if shown.cls is None else tuple(shown.cls.shape)
        (shape,) = shapes_of(spec, layer, cells, grid[-1])
        self._require(f"grid [batch height width dim] of layer {layer}", (batch, *shape), grid)
        class_token = (batch, grid[-1]) if spec.has_cls else None
        self._require(f"cls [batch dim] of layer {layer}", class_token, cls)

    def _require(self, what: str, promised: object, given: object) -> None:
        """Raise InputError unless what a backbone gives is what its spec and the protocol promise."""
        ensure(given == promised, f"{self.spec.name}: {what} should be {promised}; found {given}.")
