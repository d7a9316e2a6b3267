"""MAE: three quarters of the patches are drawn from the rest (He et al., arXiv:2111.06377).

The encoder sees the visible patches only; a light decoder, dropped afterwards, predicts the pixels of the
others, normalised patch by patch. Positions are fixed sines in both.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView
from workshop.training.data import Examples, Pictures, seeded
from workshop.training.network import fresh, initialise, sine_positions, spread, transformer
from workshop.training.objective import Moment, Objective, Optimisation


@dataclass(frozen=True, slots=True, kw_only=True)
class MaeRecipe:
    """Numbers of the objective."""

    optimisation: Optimisation = Optimisation(learning_rate=1.5e-3, weight_decay=0.05, betas=(0.9, 0.95))
    view: TrainingView = TrainingView(side=64, scale=(0.4, 1.0), flip=0.5)
    masked: float = 0.75  # share of the patches that are hidden
    width: int = 64  # channels of the decoder
    depth: int = 2  # its blocks
    heads: int = 2  # its attention heads


class MaskedAutoencoder(Objective):
    """Mean squared error of hidden patches whose pixels have mean 0 and variance 1."""

    def __init__(self, spec: BackboneSpec, recipe: MaeRecipe, data: Pictures, seed: int) -> None:
        super().__init__(spec, fresh(spec, seed), recipe.optimisation)
        self.recipe = recipe
        self.patch = spec.patch_size
        cells = spec.input_size // spec.patch_size
        positions = self.backbone.embeddings.position_embeddings.requires_grad_(False)
        positions.copy_(sine_positions(cells, spec.width))
        self.narrow = nn.Linear(spec.width, recipe.width)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, recipe.width))
        self.decoder = transformer(recipe.width, recipe.depth, recipe.heads)
        self.pixels = nn.Linear(recipe.width, 3 * self.patch**2)
        self.positions: Tensor
        self.register_buffer("positions", sine_positions(cells, recipe.width), persistent=False)
        generator = seeded("head", spec.name, seed)
        initialise(nn.ModuleList((self.narrow, self.decoder, self.pixels)), generator)
        nn.init.normal_(self.mask_token, std=0.02, generator=generator)

    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch; metric: the spread of the encoder's class tokens."""
        images = self.view(batch, self.recipe.view, moment)
        order = self.shuffled(len(images), moment.generator)
        encoded = self.encode(images, order)
        hidden = order[:, self.visible :, None]
        wanted = _take(normalised_patches(images, self.patch), hidden)
        loss = (_take(self.decode(encoded, order), hidden).float() - wanted).square().mean()
        return loss, {"spread": spread(encoded[:, 0])}

    @property
    def visible(self) -> int:
        """Patches that the encoder sees."""
        cells = self.positions.shape[1] - 1
        return cells - round(self.recipe.masked * cells)

    def shuffled(self, count: int, generator: torch.Generator) -> Tensor:
        """A permutation of the patches for each image, int64 [batch patches]; the first are visible."""
        shape = (count, self.positions.shape[1] - 1)
        return torch.rand(shape, generator=generator, device=self.positions.device).argsort(dim=1)

    def encode(self, images: Tensor, order: Tensor) -> Tensor:
        """The encoder's tokens after its norm, [batch 1+visible width]."""
        embedded = self.backbone.embeddings(images)
        hidden = torch.cat([embedded[:, :1], _take(embedded[:, 1:], order[:, : self.visible, None])], dim=1)
        for block in self.backbone.layers:
            hidden = block(hidden)
        return torch.as_tensor(self.backbone.layernorm(hidden))

    def decode(self, encoded: Tensor, order: Tensor) -> Tensor:
        """Pixels of all patches in their places, [batch patches 3*patch*patch]."""
        narrow = self.narrow(encoded)
        hidden = self.mask_token.to(narrow.dtype).expand(len(order), order.shape[1] - self.visible, -1)
        placed = _take(torch.cat([narrow[:, 1:], hidden], dim=1), order.argsort(dim=1)[..., None])
        tokens = torch.cat([narrow[:, :1], placed], dim=1) + self.positions
        return torch.as_tensor(self.pixels(self.decoder(tokens)[:, 1:]))


def _take(tokens: Tensor, places: Tensor) -> Tensor:
    """Tokens [batch many width] at places [batch few 1] of each image."""
    return tokens.gather(1, places.expand(-1, -1, tokens.shape[2]))


def patches(images: Tensor, patch: int) -> Tensor:
    """Pixels of each patch, row by row, [batch patches 3*patch*patch]."""
    return nn.functional.unfold(images, patch, stride=patch).transpose(1, 2)


def normalised_patches(images: Tensor, patch: int) -> Tensor:
    """Pixels of each patch with mean 0 and variance 1."""
    pixels = patches(images, patch)
    variance, mean = torch.var_mean(pixels, dim=-1, keepdim=True)
    return (pixels - mean) / (variance + 1e-6).sqrt()
