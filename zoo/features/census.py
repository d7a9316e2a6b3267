"""What a forward reads, computes and holds, counted operation by operation while it runs, on any network."""

import weakref
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter
from torch.utils.flop_counter import FlopCounterMode

from zoo.features import Backbone, Shown
from zoo.spec import Layer


class WeightsRead(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch says no types
    """Inside, remembers every parameter that an operation was given."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: dict[int, nn.Parameter] = {}

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  # whatever an operation gives
        given = kwargs or {}
        self.found |= {id(one): one for one in tree_iter((args, given)) if isinstance(one, nn.Parameter)}
        return func(*args, **given)

    @property
    def count(self) -> int:
        """Numbers in those parameters; what is read twice counts once."""
        return sum(weight.numel() for weight in self.found.values())


class BytesHeld(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch says no types
    """Inside, adds up the memory of the tensors that are alive at once, the weights among them.

    What a library allocates inside an operation and gives back at its end is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._weights: dict[int, int] = {}
        self._alive: dict[int, int] = {}
        self._now = 0
        self._most = 0

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401  # whatever an operation gives
        given = kwargs or {}
        for one in tree_iter((args, given)):
            if isinstance(one, nn.Parameter):
                storage = one.untyped_storage()
                self._weights[storage._cdata] = storage.nbytes()
        result = func(*args, **given)
        for one in tree_iter(result):
            if isinstance(one, Tensor):
                self._take(one.untyped_storage())
        return result

    def _take(self, storage: torch.UntypedStorage) -> None:
        """Count memory that an operation gave, until nobody holds it any more."""
        key = storage._cdata
        if key in self._weights or key in self._alive:
            return
        self._alive[key] = storage.nbytes()
        self._now += storage.nbytes()
        self._most = max(self._most, self._now)
        weakref.finalize(storage, self._release, key)

    def _release(self, key: int) -> None:
        self._now -= self._alive.pop(key)

    @property
    def peak(self) -> int:
        """The most bytes that there were at once; 0 where no operation was seen."""
        return self._most + sum(self._weights.values()) if self._most else 0


def count_up_to(
    backbone: Backbone, pixels: Tensor, layers: tuple[Layer, ...]
) -> dict[Layer, tuple[int, int]]:
    """How many weights a forward has read, and floating-point operations it has made, up to each layer.

    Additions and multiplications count apart, those of products and convolutions only
    (`torch.utils.flop_counter`). Attention is computed as plain products, which fused kernels hide.

    Args:
        backbone: The backbone; of one whose numbers are no torch tensors, all counts are 0.
        pixels: uint8 RGB [batch 3 height width].
        layers: Layers with features.
    """
    found: dict[Layer, tuple[int, int]] = {}
    read, made = WeightsRead(), FlopCounterMode(display=False)

    def note(shown: Shown) -> None:
        found[shown.layer] = read.count, made.get_total_flops()

    with sdpa_kernel(SDPBackend.MATH), made, read:
        backbone.visit(pixels, note, layers)
    return found
