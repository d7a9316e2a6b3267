"""Hooks that show the inside of a block while a forward runs: nothing is computed for them alone.

Two taps are shown a little later than they are there, in the order of `zoo.spec.Layer`: the outputs of heads
once attention has given its probabilities, too, and the branch of a ResNet once its skip is there. What a
network overwrites before its block ends is shown as a copy; all else is the live activation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from zoo.look.layout import first_tensor
from zoo.look.sublayers import Parts, Residual, Sublayers, submodule
from zoo.spec import Tap

Show = Callable[[Tensor], None]


def watch_inside(parts: Parts, tap: Tap, block: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    """Hooks that show a tap of a block when a forward reaches it.

    Args:
        parts: What is known of the block; `zoo.look.sublayers.knows` of the tap is true.
        tap: One of `zoo.spec.SUBLAYER_TAPS`.
        block: The block.
        show: Is called with what the tap reads, [batch tokens width] or [batch width height width].
    """
    if tap == "input":
        yield before(block, show)
    elif isinstance(parts, Residual):
        yield from _watch_residual(parts, tap, block, show)
    else:
        assert parts is not None
        yield from _watch_transformer(parts, tap, block, show)


def before(module: nn.Module, show: Show) -> RemovableHandle:
    """Hook that shows what enters a module: the first tensor that it is given."""

    def hook(_: nn.Module, inputs: tuple[object, ...], options: dict[str, object]) -> None:
        entering = first_tensor((inputs, options))
        assert entering is not None
        show(entering)

    return module.register_forward_pre_hook(hook, with_kwargs=True)


def after(module: nn.Module, show: Show) -> RemovableHandle:
    """Hook that shows what leaves a module: the first tensor that it gives."""

    def hook(_: nn.Module, __: tuple[object, ...], output: object) -> None:
        leaving = first_tensor(output)
        assert leaving is not None
        show(leaving)

    return module.register_forward_hook(hook)


def _watch_transformer(parts: Sublayers, tap: Tap, block: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    names, attends = parts.projections, block.get_submodule(parts.attends)
    match tap:
        case "query" | "key" if parts.rotary:
            yield from _watch_rotated(attends, block.get_submodule(getattr(names, tap)), show)
        case "query" | "key" | "value":
            yield after(block.get_submodule(getattr(names, tap)), show)
        case "heads":
            finish = _batch_first if parts.tokens_first else _unchanged
            kept = _Kept(finish, show)
            yield before(block.get_submodule(names.heads), kept.keep)
            yield after(attends, kept.show)
        case "mid":
            yield before(block.get_submodule(parts.norm2), show)
        case "mlp_hidden":
            yield before(submodule(block, names.hidden), show)
        case "attention" | "mlp":
            name = parts.attention_scale if tap == "attention" else parts.mlp_scale
            scale = getattr(block, name) if name else None
            module = block.get_submodule(getattr(parts, tap))
            yield after(module, show if scale is None else lambda output: show(output * scale))
        case _:
            yield after(block.get_submodule(getattr(parts, tap)), show)


def _watch_residual(parts: Residual, tap: Tap, block: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    skip = getattr(block, parts.skip) if parts.skip else None
    if tap == "skip":
        yield before(block, show) if skip is None else after(skip, show)
    elif parts.overwrites and skip is not None:
        kept = _Kept(torch.clone, show)
        yield after(block.get_submodule(parts.branch), kept.keep)
        yield after(skip, kept.show)
    else:
        yield after(block.get_submodule(parts.branch), show)


class _Kept:
    """Keeps an activation from the place where it is to the place where it is shown."""

    def __init__(self, finish: Callable[[Tensor], Tensor], show: Show) -> None:
        self._finish = finish
        self._show = show
        self._kept: Tensor | None = None

    def keep(self, activation: Tensor) -> None:
        self._kept = activation

    def show(self, _: Tensor) -> None:
        kept, self._kept = self._kept, None
        assert kept is not None
        self._show(self._finish(kept))


@dataclass(frozen=True, slots=True)
class _Rotation:
    """What a rotary position embedding multiplies with, of one head: both are [tokens dim]."""

    cosine: Tensor
    sine: Tensor

    def __call__(self, projected: Tensor) -> Tensor:
        """Queries or keys [batch tokens heads*dim], the last tokens rotated; those before have no place.

        Su et al., RoFormer, arXiv:2104.09864, section 3.4.2, with the halves of a head as pairs.
        """
        heads = projected.reshape(*projected.shape[:2], -1, self.cosine.shape[-1]).float()
        first = heads.shape[1] - len(self.cosine)
        there = heads[:, first:]
        left, right = there.chunk(2, dim=-1)
        turned = torch.cat([-right, left], dim=-1)
        rotated = there * self.cosine.float()[:, None] + turned * self.sine.float()[:, None]
        return torch.cat([heads[:, :first], rotated], dim=1).flatten(2).to(projected.dtype)


def _watch_rotated(attends: nn.Module, projection: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    """Hooks that show queries or keys as they attend: rotated inside ``attends``, where no module does it."""
    given: list[_Rotation] = []

    def see(_: nn.Module, __: tuple[Any, ...], options: dict[str, Any]) -> None:
        given[:] = [_Rotation(*options["position_embeddings"])]

    yield attends.register_forward_pre_hook(see, with_kwargs=True)
    yield after(projection, lambda projected: show(given.pop()(projected)))


def _batch_first(tokens: Tensor) -> Tensor:
    return tokens.transpose(0, 1)


def _unchanged(tokens: Tensor) -> Tensor:
    return tokens
