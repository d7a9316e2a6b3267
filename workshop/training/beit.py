"""BEiT: blocks of patches are hidden, and their visual tokens are guessed (Bao et al., arXiv:2106.08254).

The network has relative positions and LayerScale, and its last blocks are its decoder.

The visual token of a patch is the nearest of a set found by k-means, which is trained first. The paper's
tokenizer is a dVAE that was trained on 250 million images; at this scale k-means takes seconds, its codes are
all used by construction, and it is the same in every run. Patches are compared by their principal components,
each divided by the square root of its standard deviation: half-way to white, so that codes distinguish edges
and textures as well as colours, which dominate raw pixels.
"""

import math
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView, augment
from workshop.training.data import Examples, Pictures, seeded
from workshop.training.mae import patches
from workshop.training.network import fresh, right, spread
from workshop.training.objective import Moment, Objective, Optimisation

_AT_ONCE = 16384  # points that are compared with all centres at once, which bounds the memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizing:
    """Numbers of the tokenizer."""

    codes: int  # how many visual tokens there are
    components: int  # principal components by which patches are compared
    images: int  # training images whose patches are clustered
    rounds: int  # iterations of k-means


class Tokenizer(nn.Module):
    """Gives each patch the number of the nearest centre."""

    def __init__(self, mean: Tensor, projection: Tensor, centres: Tensor) -> None:
        super().__init__()
        self.mean: Tensor
        self.projection: Tensor
        self.centres: Tensor
        for name, tensor in (("mean", mean), ("projection", projection), ("centres", centres)):
            self.register_buffer(name, tensor)

    def forward(self, patches: Tensor) -> Tensor:
        """Visual tokens, int64 [...], of patches [... pixels]."""
        with torch.autocast(patches.device.type, enabled=False):
            return _nearest((patches.float() - self.mean) @ self.projection, self.centres)


def fit_tokenizer(patches: Tensor, how: Tokenizing, generator: torch.Generator) -> Tokenizer:
    """A tokenizer from patches [patches pixels]; raises InputError for fewer of them than visual tokens."""
    if len(patches) < how.codes:
        raise InputError(
            f"{how.codes} visual tokens need as many patches; found {len(patches)}: give more images"
        )
    mean = patches.mean(0)
    values, directions = torch.linalg.eigh((patches - mean).T @ (patches - mean) / len(patches))
    values, directions = values.flip(0)[: how.components], directions.flip(1)[:, : how.components]
    projection = directions / values.clamp(min=1e-8) ** 0.25
    points = (patches - mean) @ projection
    centres = points[torch.randperm(len(points), generator=generator)[: how.codes]]
    for _ in range(how.rounds):
        nearest = _nearest(points, centres)
        sums = torch.zeros_like(centres).index_add_(0, nearest, points)
        counts = torch.bincount(nearest, minlength=len(centres))[:, None]
        # a centre without points goes to a random one
        strays = points[torch.randint(len(points), (len(centres),), generator=generator)]
        centres = torch.where(counts > 0, sums / counts.clamp(min=1), strays)
    return Tokenizer(mean, projection, centres)


def _nearest(points: Tensor, centres: Tensor) -> Tensor:
    offset = centres.square().sum(1) / 2
    return torch.cat([(part @ centres.T - offset).argmax(-1) for part in torch.split(points, _AT_ONCE)])


@dataclass(frozen=True, slots=True, kw_only=True)
class BeitRecipe:
    """Numbers of the objective."""

    optimisation: Optimisation = Optimisation(learning_rate=1.5e-3, weight_decay=0.05, clip=3.0)
    # what the network and the tokenizer see
    view: TrainingView = TrainingView(side=64, scale=(0.4, 1.0), flip=0.5, jitter=0.5)
    masked: float = 0.4  # share of the patches that are hidden
    least: int = 4  # patches of the smallest hidden block
    aspect: float = 0.3  # least height by width of a block; the largest is one by it
    blocks: int = 16  # blocks that are drawn for an image; those beyond the share are not used
    # the network says how many tokens there are
    tokenizing: Tokenizing = Tokenizing(codes=512, components=32, images=1024, rounds=20)


class MaskedTokens(Objective):
    """Cross-entropy of the visual tokens of hidden patches."""

    def __init__(self, spec: BackboneSpec, recipe: BeitRecipe, data: Pictures, seed: int) -> None:
        super().__init__(spec, fresh(spec, seed), recipe.optimisation)
        self.recipe = recipe
        self.patch = spec.patch_size
        how = replace(recipe.tokenizing, codes=int(self.backbone.config.vocab_size))
        generator = seeded("tokenizer", spec.name, seed)
        chosen = torch.randperm(len(data), generator=generator)[: how.images].numpy()
        views = augment(data.take(np.sort(chosen)).images, recipe.view, generator)
        self.tokenizer = fit_tokenizer(patches(views, spec.patch_size).flatten(0, 1), how, generator)

    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss; metrics are accuracy, share of all tokens in the batch, spread of what predicts patches."""
        pixels = augment(batch.images, self.recipe.view, moment.generator)
        mask = block_mask(len(pixels), pixels.shape[-1] // self.patch, self.recipe, moment.generator)
        wanted = self.tokenizer(patches(pixels, self.patch))
        output = self.backbone.beit(self.normalised(pixels), bool_masked_pos=mask).last_hidden_state
        hidden = self.backbone.layernorm(output[:, 1:][mask])
        logits = self.backbone.lm_head(hidden).float()
        loss = nn.functional.cross_entropy(logits, wanted[mask])
        used = logits.new_zeros(logits.shape[1]).index_fill(0, wanted.flatten(), 1.0).mean()
        return loss, {"accuracy": right(logits, wanted[mask]), "codes": used, "spread": spread(hidden)}


def block_mask(count: int, cells: int, recipe: BeitRecipe, generator: torch.Generator) -> Tensor:
    """Hidden patches of each image, bool [batch cells*cells]; each image has the same number of them.

    Rectangles of random area and aspect are laid on the grid until they cover the share; of the last one only
    as many patches are taken, at random, as are missing.
    """
    wanted = round(recipe.masked * cells * cells)
    device = generator.device
    uniform = partial(torch.rand, generator=generator, device=device)
    shape = (count, recipe.blocks)
    area = recipe.least + (wanted - recipe.least) * uniform(shape)
    ratio = ((2 * uniform(shape) - 1) * -math.log(recipe.aspect)).exp()
    height, width = ((area * r).sqrt().round().clamp(1, cells) for r in (ratio, 1 / ratio))
    top, left = ((uniform(shape) * (cells - side + 1)).floor() for side in (height, width))
    line = torch.arange(cells, device=device)
    rows = (line >= top[..., None]) & (line < (top + height)[..., None])
    columns = (line >= left[..., None]) & (line < (left + width)[..., None])
    covered = (rows[..., :, None] & columns[..., None, :]).flatten(2)
    turn = torch.arange(recipe.blocks, device=device)[:, None]
    first = torch.where(covered, turn, recipe.blocks).amin(dim=1)
    chosen = (first + uniform(count, cells * cells)).argsort(dim=1)[:, :wanted]
    return torch.zeros(count, cells * cells, dtype=torch.bool, device=device).scatter_(1, chosen, True)
