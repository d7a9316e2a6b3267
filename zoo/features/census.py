"""Counts what a forward pass of any network reads, computes and holds, operation by operation."""

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import flop_registry

from layerboard.zoo.features import Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.spec import Layer, Layers


class Census(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch says no types
    """Context that records every parameter that is read, floating-point operations, and bytes held at once.

    Additions and multiplications count separately, those of products and convolutions only, by the formulas
    of `torch.utils.flop_counter`. Memory that a library allocates and frees inside an operation is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.weights: dict[int, nn.Parameter] = {}
        self.operations = 0  # floating-point operations so far
        self._of_weights: dict[int, int] = {}  # bytes by storage
        self._alive: dict[int, int] = {}
        self._now = 0
        self.activations = 0  # peak bytes, without weights

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        options = kwargs or {}
        counting = flop_registry.get(func._overloadpacket)
        if counting is None and torch.is_inference_mode_enabled():  # then torch has not yet split operations
            with self:
                split = func.decompose(*args, **options)
            if split is not NotImplemented:
                return split
        for value in tree_iter((args, options)):
            if isinstance(value, nn.Parameter):
                self.weights[id(value)] = value
                storage = value.untyped_storage()
                self._of_weights[storage._cdata] = storage.nbytes()
        result = func(*args, **options)
        if counting is not None:
            self.operations += counting(*args, **options, out_val=result)
        for storage in (v.untyped_storage() for v in tree_iter(result) if isinstance(v, Tensor)):
            key = storage._cdata
            if key not in self._of_weights and key not in self._alive:  # counts until nobody holds it
                self._alive[key] = storage.nbytes()
                self._now += storage.nbytes()
                self.activations = max(self.activations, self._now)
                weakref.finalize(storage, self._release, key)
        return result

    def _release(self, key: int) -> None:
        self._now -= self._alive.pop(key)

    @property
    def count(self) -> int:
        """Number of values in those parameters; each counts once, however often it is read."""
        return sum(weight.numel() for weight in self.weights.values())

    @property
    def peak(self) -> int:
        """Peak bytes, weights included; 0 if no operation was seen."""
        return self.activations + sum(self._of_weights.values()) if self.activations else 0


def count_up_to(backbone: Backbone, pixels: Tensor, layers: Layers) -> dict[Layer, tuple[int, int]]:
    """Weights that a forward pass has read, and floating-point operations it has made, up to each layer.

    Attention is computed as plain products, which fused kernels would hide. For a backbone whose data are not
    torch tensors, all counts are 0.
    """
    counts: dict[Layer, tuple[int, int]] = {}
    census = Census()

    def note(shown: Shown) -> None:
        counts[shown.layer] = census.count, census.operations

    with sdpa_kernel(SDPBackend.MATH), census:
        backbone.visit(pixels, note, layers)
    return counts
