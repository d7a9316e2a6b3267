"""Hooks that show the inside of a block during a forward pass: nothing is computed just for them.

Two taps are shown later than they are computed, to keep the order of `zoo.spec.Layer`: the outputs of heads
after the attention probabilities, and the branch of a ResNet after its skip. Activations that a network
overwrites before its block ends are shown as copies; all others are live.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from layerboard.zoo.entries.architecture import Parts, Residual, Sublayers
from layerboard.zoo.features.layers import first_tensor
from layerboard.zoo.spec import Tap

Show = Callable[[Tensor], None]

# Cosines and sines of a rotary position embedding, [tokens dim] each, for all channels of one head.
Rotary = tuple[Tensor, Tensor]

FUSED = "scaled_dot_product_attention"  # in place of a module's path: blocks call this function of torch


def before(module: nn.Module, show: Show) -> RemovableHandle:
    """Hook that shows the input of a module: the first tensor of it."""

    def hook(_: nn.Module, inputs: tuple[object, ...], options: dict[str, object]) -> None:
        entering = first_tensor((inputs, options))
        assert entering is not None
        show(entering)

    return module.register_forward_pre_hook(hook, with_kwargs=True)


def after(module: nn.Module, show: Show) -> RemovableHandle:
    """Hook that shows the output of a module: the first tensor of it."""

    def hook(_: nn.Module, __: tuple[object, ...], output: object) -> None:
        leaving = first_tensor(output)
        assert leaving is not None
        show(leaving)

    return module.register_forward_hook(hook)


def watch_residual(parts: Residual, tap: Tap, block: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    """Hooks that show the skip or branch of a block when a forward reaches it, [batch dim height width]."""
    skip = getattr(block, parts.skip) if parts.skip else None
    if tap == "skip":
        yield before(block, show) if skip is None else after(skip, show)
    elif parts.overwrites and skip is not None:
        waiting: list[Tensor] = []
        yield after(block.get_submodule(parts.branch), waiting.append)
        yield after(skip, lambda _: show(waiting.pop().clone()))
    else:
        yield after(block.get_submodule(parts.branch), show)


def watch_transformer(parts: Sublayers, tap: Tap, block: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    """Hooks that show one of `zoo.spec.TRANSFORMER_TAPS` when a forward reaches it, [batch tokens width]."""
    match tap:
        case "query" | "key" if parts.rotary:
            attends = block.get_submodule(parts.attends)
            yield from _watch_rotated(attends, block.get_submodule(getattr(parts, tap)), show)
        case "heads" if parts.attends == FUSED:
            yield before(block.get_submodule(parts.heads), show)
        case "heads":
            waiting: list[Tensor] = []

            def show_waiting(_: Tensor) -> None:
                heads = waiting.pop()
                show(heads.transpose(0, 1) if parts.tokens_first else heads)

            yield before(block.get_submodule(parts.heads), waiting.append)
            yield after(block.get_submodule(parts.attends), show_waiting)
        case "mid":
            yield before(block.get_submodule(parts.norm2), show)
        case "mlp_hidden":
            there = dict(block.named_modules())
            yield before(next(there[name] for name in parts.hidden if name in there), show)
        case "attention" | "mlp" if not getattr(parts, tap):
            yield from _watch_gain(parts, tap, block, show)
        case "attention" | "mlp":
            name = parts.attention_scale if tap == "attention" else parts.mlp_scale
            scale = getattr(block, name) if name else None
            module = block.get_submodule(getattr(parts, tap))
            yield after(module, show if scale is None else lambda output: show(output * scale))
        case _:
            yield after(block.get_submodule(getattr(parts, tap)), show)


def _watch_gain(
    parts: Sublayers, tap: Literal["attention", "mlp"], block: nn.Module, show: Show
) -> Iterator[RemovableHandle]:
    """Hooks that show what the stream gains before or after the second norm, as no one module gives it."""
    former: list[Tensor] = []
    norm2 = block.get_submodule(parts.norm2)
    first, last = (block, norm2) if tap == "attention" else (norm2, block)
    yield before(first, lambda stream: former.append(stream.clone()))  # it may be changed in place
    watch = before if tap == "attention" else after
    yield watch(last, lambda stream: show(stream - former.pop()))


def _watch_rotated(attends: nn.Module, projection: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    """Hooks that show rotated queries or keys if ``attends`` rotates them without a module."""
    rotary: list[Rotary] = []

    def see(_: nn.Module, __: tuple[Any, ...], options: dict[str, Any]) -> None:
        rotary[:] = [options["position_embeddings"]]

    def show_rotated(projected: Tensor) -> None:
        cosine, sine = rotary.pop()
        heads = projected.reshape(*projected.shape[:2], -1, cosine.shape[-1]).transpose(1, 2)
        first = heads.shape[2] - len(cosine)  # tokens before the patches have no position
        turned = [heads[:, :, :first], rotated(heads[:, :, first:], cosine, sine)]
        show(torch.cat(turned, dim=2).transpose(1, 2).flatten(2))

    yield attends.register_forward_pre_hook(see, with_kwargs=True)
    yield after(projection, show_rotated)


def rotated(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Queries or keys [batch heads tokens dim], rotated with the halves of a head as pairs.

    Su et al., RoFormer, arXiv:2104.09864, section 3.4.2. Cosines and sines are of one head, [tokens dim].
    """
    left, right = heads.float().chunk(2, dim=-1)
    turned = torch.cat([-right, left], dim=-1)
    return (heads.float() * cosine.float() + turned * sine.float()).to(heads.dtype)


@contextmanager
def changed(*attributes: tuple[object, str, object]) -> Iterator[None]:
    """Context in which attributes of some objects, given by name, have other values."""
    usual = [(holder, name, getattr(holder, name)) for holder, name, _ in attributes]
    for attribute in attributes:
        setattr(*attribute)
    try:
        yield
    finally:
        for attribute in usual:
            setattr(*attribute)


def eager(body: nn.Module, parts: Parts) -> AbstractContextManager[None]:
    """Context in which a network of transformers computes attention probabilities as tensors."""
    config, is_fused = getattr(body, "config", None), isinstance(parts, Sublayers) and parts.attends == FUSED
    if is_fused or not hasattr(config, "_attn_implementation"):
        return nullcontext()
    return changed((config, "_attn_implementation", "eager"))


class Watched(TorchFunctionMode):
    """Context that shows the arguments and the output of each call of a function of torch."""

    def __init__(self, function: Callable[..., Tensor], show: Callable[..., None]) -> None:
        super().__init__()
        self._function, self._show = function, show

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        output = func(*args, **(kwargs or {}))
        if func is self._function:
            self._show(args, kwargs or {}, output)
        return output


def probabilities_of(  # noqa: PLR0913  # the arguments of torch's function, with their defaults
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention probabilities of a call of torch's ``scaled_dot_product_attention``, before any dropout.

    They are [batch heads queries keys]; a call without an axis of heads has one head.
    """
    if enable_gqa:  # several heads of queries share one of keys
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    maps = scores.softmax(-1)
    return maps[:, None] if maps.ndim == 3 else maps


def _watch_fused(block: nn.Module, show: Show) -> Iterator[RemovableHandle]:
    """Hooks that show the probabilities of the fused attention that a block calls."""
    calls = Watched(
        scaled_dot_product_attention, lambda given, options, _: show(probabilities_of(*given, **options))
    )

    def start(*_: object) -> None:
        calls.__enter__()  # type: ignore[no-untyped-call]

    def end(*_: object) -> None:
        calls.__exit__(None, None, None)  # type: ignore[no-untyped-call]

    yield block.register_forward_pre_hook(start)
    yield block.register_forward_hook(end, always_call=True)


def watch_attention(
    parts: Parts, block: nn.Module, show: Callable[[Tensor | None], None]
) -> Iterator[RemovableHandle]:
    """Hooks that show the probabilities of a block when the forward reaches it, and drop them afterwards.

    Register them before hooks that read what attention adds to the stream. They show None if the network
    computed no probabilities.
    """
    assert isinstance(parts, Sublayers)
    if parts.attends == FUSED:
        yield from _watch_fused(block, show)
        return
    attends = block.get_submodule(parts.attends)

    def ask(_: nn.Module, inputs: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        return inputs, options | {"need_weights": True, "average_attn_weights": False}

    def hook(
        _: nn.Module, __: tuple[Tensor, ...], output: tuple[Tensor, Tensor | None]
    ) -> tuple[Tensor, None]:
        show(output[1])
        return output[0], None

    if isinstance(attends, nn.MultiheadAttention):
        yield attends.register_forward_pre_hook(ask, with_kwargs=True)
    yield attends.register_forward_hook(hook)
