"""A network of transformers that shows every layer of one forward pass to a visitor."""

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from zoo.errors import InputError
from zoo.features import BackboneIdentity, Channels, ReceptiveField, Shown, Visitor, Weights
from zoo.look.attention import attention_maps, eager, gives_probabilities, watch_attention
from zoo.look.layers import require, unknown_layer, wanted_layers
from zoo.look.network import Network
from zoo.look.precision import exact_float32
from zoo.look.receptive import receptive_fields
from zoo.look.split import Cells, cells_of, map_features, token_features
from zoo.look.sublayers import knows, unknown_sublayer
from zoo.look.taps import after, before, watch_inside
from zoo.look.weights import weights_of
from zoo.spec import SUBLAYER_TAPS, BackboneSpec, Layer

_Show = Callable[[Layer, Tensor | None], None]


class HookedBackbone:
    """A frozen network of transformers whose blocks are watched with hooks.

    Nothing is kept: a layer's features reach the visitor while the next block has not run yet, so memory does
    not grow with the number of layers.
    """

    def __init__(
        self,
        spec: BackboneSpec,
        network: Network,
        identity: BackboneIdentity,
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.spec = spec
        self.revision = identity.revision
        self.fingerprint = identity.fingerprint
        self.device = device
        self.dtype = dtype
        self._network = network
        self._layout = torch.channels_last if network.convolutional else torch.contiguous_format
        for part in (network.body, network.final_norm):
            if part is not None:
                part.to(device=device, dtype=dtype)
        network.body.to(memory_format=self._layout)  # type: ignore[call-overload]  # missing in torch's stubs
        mean, std = (torch.tensor(v, device=device)[:, None, None] for v in (spec.mean, spec.std))
        self._scale, self._shift = 1 / (255 * std), -mean / std

    def refusal(self, layers: Collection[Layer]) -> str:
        """Why it cannot show one of these layers, in a sentence; see `zoo.features.Backbone`."""
        if unknown := unknown_layer(self.spec, layers):
            return unknown
        for layer in wanted_layers(self.spec, layers):
            if layer.tap in SUBLAYER_TAPS and not knows(self._network.parts, layer.tap):
                return unknown_sublayer(self.spec, layer)
            if layer.tap == "probabilities" and not gives_probabilities(self._network):
                return f"{self.spec.name} is a network whose attention probabilities cannot be read."
        return ""

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        """Run one forward and call ``visitor`` once for each layer; see `zoo.features.Backbone`.

        Raises:
            InputError: The pixels, a layer or what the network gives is not what the entry says.
        """
        cells = cells_of(self.spec, pixels)
        wanted = wanted_layers(self.spec, layers)
        require(self.refusal(wanted))
        with torch.no_grad(), exact_float32():
            self._show(self._normalise(pixels), visitor, wanted, cells)

    def fields_refusal(self) -> str:
        """Why it cannot say which pixels move a cell; see `zoo.features.Backbone`."""
        if self.dtype == torch.float32:
            return ""
        name = str(self.dtype).removeprefix("torch.")
        return f"{self.spec.name} runs in {name}, whose gradients are too coarse; give --dtype float32."

    def receptive_fields(
        self, pixels: Tensor, layers: Collection[Layer], channels: Channels
    ) -> tuple[ReceptiveField, ...]:
        """Which pixels move the centre cell of each of these layers; see `zoo.features.Backbone`.

        Raises:
            InputError: As `visit`; or it runs in less than float32.
        """
        cells = cells_of(self.spec, pixels)
        wanted = wanted_layers(self.spec, layers)
        require(self.refusal(wanted) or self.fields_refusal())

        def forward(images: Tensor, visitor: Visitor) -> None:
            self._show(images, visitor, wanted, cells)

        return receptive_fields(forward, self._normalise(pixels), channels)

    def _show(self, images: Tensor, visitor: Visitor, wanted: tuple[Layer, ...], cells: Cells) -> None:
        """One forward of the network's input that shows those layers."""
        shown: list[Layer] = []

        def show(layer: Layer, activation: Tensor | None) -> None:
            shown.append(layer)
            visitor(self._split(layer, activation, len(images), cells))

        with ExitStack() as hooks:
            if any(layer.tap == "probabilities" for layer in wanted):
                hooks.enter_context(eager(self._network))
            for layer in wanted:
                for hook in self._watch(layer, show):
                    hooks.callback(hook.remove)
            options = {"interpolate_pos_encoding": True} if self._network.interpolates else {}
            self._network.body(images, **options)
        if tuple(shown) != wanted:
            raise InputError(
                f"{self.spec.name}: the network showed {len(shown)} layers, the entry has {len(wanted)}."
            )

    def weights(self) -> Weights:
        """Filters, position embeddings and position biases; see `zoo.features.Backbone`."""
        return weights_of(self.spec, self._network)

    def release(self, used: Collection[nn.Parameter]) -> None:
        """Give the memory of all weights back but of these; no forward may reach what reads the others."""
        kept = {id(weight) for weight in used}
        parts = (self._network.body, self._network.final_norm)
        for module in (module for part in parts if part is not None for module in part.modules()):
            for name, weight in module.named_parameters(recurse=False):
                if id(weight) not in kept:
                    setattr(module, name, nn.Parameter(weight.to("meta"), requires_grad=False))

    def _normalise(self, pixels: Tensor) -> Tensor:
        """The network's input, [batch 3 height width], from uint8 pixels."""
        images = pixels.to(self.device, non_blocking=True).float()
        images = images.mul_(self._scale).add_(self._shift)
        return images.to(self.dtype, memory_format=self._layout)

    def _split(self, layer: Layer, activation: Tensor | None, batch: int, cells: Cells) -> Shown:
        if activation is None or layer.tap == "probabilities":
            return attention_maps(self.spec, layer, activation, batch, cells)
        of_kind = map_features if self._network.convolutional else token_features
        return (self._network.split or of_kind)(self.spec, layer, activation, batch, cells)

    def _watch(self, layer: Layer, show: _Show) -> Iterator[RemovableHandle]:
        """Hooks that show a layer when the forward reaches it."""
        blocks, norm = self._network.blocks, self._network.final_norm
        if layer.tap == "probabilities":
            yield watch_attention(self._network, layer, show)
        elif layer.tap in SUBLAYER_TAPS:
            yield from watch_inside(
                self._network.parts, layer.tap, blocks[layer.index - 1], partial(show, layer)
            )
        elif layer.index == 0:
            yield before(blocks[0], partial(show, layer))
        elif layer.tap == "final" and norm is not None:
            yield after(blocks[-1], lambda stream: show(layer, norm(stream)))
        else:
            yield after(blocks[layer.index - 1], partial(show, layer))
