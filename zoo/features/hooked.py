"""A network that shows every layer of one forward pass to a visitor, and the places to hook."""

import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from layerboard.zoo.entries.architecture import Parts, Residual, StreamLayout, Sublayers
from layerboard.zoo.errors import InputError, ensure, first_line
from layerboard.zoo.features import (
    AttentionMaps,
    BackboneIdentity,
    Channels,
    ReceptiveField,
    Shown,
    Visitor,
    Weights,
)
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.layers import Cells, cells_of, features_of, taps_in_words
from layerboard.zoo.features.receptive import receptive_fields
from layerboard.zoo.features.taps import (
    after,
    before,
    changed,
    eager,
    watch_attention,
    watch_residual,
    watch_transformer,
)
from layerboard.zoo.features.weights import weights_of
from layerboard.zoo.spec import NORMED, SUBLAYER_TAPS, BackboneSpec, Layer, Layers

Show = Callable[[Tensor | None], None]
BETWEEN_BLOCKS = ("input", "block", NORMED, "final")  # taps


@dataclass(frozen=True, slots=True)
class Network:
    """A network whose ``body`` runs all blocks, and the places to hook."""

    body: nn.Module
    blocks: tuple[nn.Module, ...]
    final_norm: nn.Module | None
    layouts: tuple[StreamLayout, ...]  # of layer 0 and of each block's output; ``final`` has the last
    interpolates: bool = False  # whether its forward must be told to interpolate position embeddings
    parts: Parts = None


class HookedBackbone(Backbone):
    """A frozen network whose blocks are observed by hooks.

    Nothing is kept: a layer's features reach the visitor before the next block runs, so memory does not grow
    with the number of layers.
    """

    def __init__(
        self, spec: BackboneSpec, network: Network, identity: BackboneIdentity, device: torch.device
    ) -> None:
        super().__init__(spec, identity, device)
        self._network, self.body = network, network.body
        self.parts = [part for part in (network.body, network.final_norm) if part is not None]  # all weights
        # torch cannot lay out kernels over three axes, which some networks have for two, so
        is_flat = all(weight.ndim < 5 for part in self.parts for weight in part.parameters())
        is_convolutional = set(network.layouts) == {"maps"} and is_flat
        self._format = torch.channels_last if is_convolutional else torch.contiguous_format
        for part in self.parts:
            part.to(device=device, dtype=self.dtype)
        network.body.to(memory_format=self._format)  # type: ignore[call-overload]  # missing in torch's stubs
        mean, std = (torch.tensor(v, device=device)[:, None, None] for v in (spec.mean, spec.std))
        self._scale, self._shift = 1 / (255 * std), -mean / std

    def compile(self) -> None:
        """Compile the blocks of a transformer, which are alike and share one graph; a ResNet's are not."""
        # Exact float32 is our choice: `pass_context` keeps TF32 off, and torch advises against that.
        warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
        if "maps" not in self._network.layouts:
            self.compiled = tuple(torch.compile(block.forward) for block in self._network.blocks)

    def fields_refusal(self) -> str:
        dtype = self.spec.dtype
        coarse = f"{self.spec.name} runs in {dtype}, whose gradients are too coarse; give --dtype float32."
        return "" if dtype == "float32" else coarse

    def weights(self) -> Weights:
        return weights_of(self.spec, self._network.body)

    def release(self, used: Collection[nn.Parameter]) -> None:
        """Free the memory of all weights but these; no later forward pass may reach what reads the others."""
        needed = {id(weight) for weight in used}
        for module in (module for part in self.parts for module in part.modules()):
            for name, weight in module.named_parameters(recurse=False):
                if id(weight) not in needed:
                    setattr(module, name, nn.Parameter(weight.to("meta"), requires_grad=False))

    def _refused(self, layer: Layer) -> str:
        parts, kind = self._network.parts, Residual if layer.tap in ("skip", "branch") else Sublayers
        if layer.tap in SUBLAYER_TAPS and layer.tap != "input" and not isinstance(parts, kind):
            taps = BETWEEN_BLOCKS[: len(BETWEEN_BLOCKS) if self.spec.has_final else 2]
            return (
                f"{self.spec.name} has no layer {layer}: where the {layer.tap} of its blocks is, if they "
                f"have one, is not known; its taps are {taps_in_words(taps)}."
            )
        config, origin = getattr(self._network.body, "config", None), self.spec.origin
        can_choose = not origin.has_architecture or hasattr(config, "_attn_implementation")
        can_show = isinstance(parts, Sublayers) and parts.gives_probabilities
        if layer.tap != "probabilities" or (can_choose and can_show):
            return ""
        unread = "is a network whose attention probabilities cannot be read"
        return f"{self.spec.name} {unread if origin.has_architecture else origin.no_heads}."

    def _visit(self, pixels: Tensor, visitor: Visitor, wanted: Layers, cells: Cells) -> None:
        try:
            with self._autocast(self.spec.mixed):
                self._forward(self._normalised(pixels), visitor, wanted, cells)
        except RuntimeError as error:
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise
            cause = getattr(error, "inner_exception", error)
            reason = f"{self.spec.name} cannot be compiled here ({first_line(cause)})"
            raise InputError(f"{reason}; leave --compile out.") from error

    def _fields(
        self, pixels: Tensor, wanted: Layers, channels: Channels, advance: Callable[[float], None]
    ) -> tuple[ReceptiveField, ...]:
        forward = partial(self._forward, wanted=wanted, cells=cells_of(self.spec, pixels))
        return receptive_fields(forward, self._normalised(pixels), channels, advance)

    def _autocast(self, enabled: bool) -> AbstractContextManager[object]:
        """Context that turns the autocast of a mixed-precision network on or off; no effect for others."""
        if not self.spec.mixed:
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16, enabled)

    def _normalised(self, pixels: Tensor) -> Tensor:
        """The network's input, [batch 3 height width], from uint8 pixels."""
        images = pixels.to(self.device, non_blocking=True).float().mul_(self._scale).add_(self._shift)
        return images.to(self.dtype, memory_format=self._format)

    def _forward(self, images: Tensor, visitor: Visitor, wanted: Layers, cells: Cells) -> None:
        """One forward pass of the network's input that shows those layers."""
        reached: list[Layer] = []

        def show(layer: Layer, activation: Tensor | None) -> None:
            reached.append(layer)
            shown = self._shown(layer, activation, images.shape[0], cells)
            with self._autocast(False):  # autocast applies to the network, not to the visitor
                visitor(shown)

        with ExitStack() as hooks:
            if any(layer.tap == "probabilities" for layer in wanted):
                hooks.enter_context(eager(self._network.body, self._network.parts))
            for layer in wanted:
                for hook in self._watch(layer, partial(show, layer)):
                    hooks.callback(hook.remove)
            # a hook inside a block would break its graph
            if self.compiled and all(layer.tap in BETWEEN_BLOCKS for layer in wanted):
                blocks = zip(self._network.blocks, self.compiled, strict=True)
                hooks.enter_context(changed(*((block, "forward", fast) for block, fast in blocks)))
            options = {"interpolate_pos_encoding": True} if self._network.interpolates else {}
            self._network.body(images, **options)
        counts = f"the network showed {len(reached)} layers, the entry has {len(wanted)}."
        ensure(tuple(reached) == wanted, f"{self.spec.name}: {counts}")

    def _shown(self, layer: Layer, activation: Tensor | None, batch: int, cells: Cells) -> Shown:
        spec = self.spec
        if activation is not None and layer.tap != "probabilities":
            return features_of(spec, layer, activation, self._network.layouts[layer.index], batch, cells)
        tokens = spec.prefix_tokens + cells[0] * cells[1]
        if activation is None or tuple(activation.shape) != (batch, spec.heads, tokens, tokens):
            raise InputError(
                f"{spec.name}: the probabilities of layer {layer} should be [batch heads queries keys] with "
                f"{spec.heads} heads and {tokens} tokens; the network gives "
                f"{'none' if activation is None else list(activation.shape)}."
            )
        return AttentionMaps(layer, activation, spec.prefix_tokens, cells)

    def _watch(self, layer: Layer, show: Show) -> Iterator[RemovableHandle]:
        """Hooks that show a layer when the forward pass reaches it."""
        norm, parts, tap = self._network.final_norm, self._network.parts, layer.tap
        block = self._network.blocks[max(0, layer.index - 1)]
        if tap == "probabilities":
            yield from watch_attention(parts, block, show)
        elif tap == "input" or layer.index == 0:
            yield before(block, show)
        elif tap in (NORMED, "final") and norm is not None:
            yield after(block, lambda stream: show(norm(stream)))
        elif isinstance(parts, Sublayers) and tap in SUBLAYER_TAPS:
            yield from watch_transformer(parts, tap, block, show)
        elif isinstance(parts, Residual) and tap in SUBLAYER_TAPS:
            yield from watch_residual(parts, tap, block, show)
        else:
            yield after(block, show)
