"""MoCo-v3: a network and a momentum copy of it agree on two views of an image.

Patches are projected by a fixed random matrix and positions are fixed sines, as in the paper.
Source: Chen et al., arXiv:2104.02057.
"""

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView
from workshop.training.data import Examples, Pictures, seeded
from workshop.training.network import (
    cosines,
    fresh,
    initialise,
    perceptron,
    right,
    sine_positions,
    spread,
    tokens,
)
from workshop.training.objective import Moment, Objective, Optimisation, cosine_schedule, follow

# Views of 16 patches: in 1,200 steps they taught as much as views of 36, in half the time.
_FIRST = TrainingView(side=32, scale=(0.3, 1.0), flip=0.5, jitter=0.8, hue=0.05, grey=0.1, blur=0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class MocoRecipe:
    """Numbers of the objective."""

    optimisation: Optimisation = Optimisation(learning_rate=1.5e-3, weight_decay=0.1)
    first: TrainingView = _FIRST  # first view
    second: TrainingView = replace(_FIRST, blur=0.1, solarise=0.2)  # second view
    hidden: int = 512  # channels inside projector and predictor
    shared: int = 128  # channels of the space in which views meet
    temperature: float = 0.2  # of the soft-max
    momentum: float = 0.99  # of the momentum network at first; it rises to 1 on a cosine


class MomentumContrast(Objective):
    """Symmetric InfoNCE between predictions of each view and momentum projections of the other."""

    def __init__(self, spec: BackboneSpec, recipe: MocoRecipe, data: Pictures, seed: int) -> None:
        super().__init__(spec, fresh(spec, seed), recipe.optimisation)
        self.recipe = recipe
        embeddings = self.backbone.embeddings
        embeddings.patch_embeddings.projection.requires_grad_(False)
        positions = embeddings.position_embeddings.requires_grad_(False)
        positions.copy_(sine_positions(spec.input_size // spec.patch_size, spec.width))
        hidden, shared = recipe.hidden, recipe.shared
        self.projector = perceptron(spec.width, hidden, hidden, shared)
        self.predictor = perceptron(shared, hidden, shared)
        initialise(nn.ModuleList((self.projector, self.predictor)), seeded("head", spec.name, seed))
        self.momentum_backbone = copy.deepcopy(self.backbone).requires_grad_(False)
        self.momentum_projector = copy.deepcopy(self.projector).requires_grad_(False)

    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch; metrics: how often a view finds its other, and the spread of the class tokens."""
        views = [self.view(batch, view, moment) for view in (self.recipe.first, self.recipe.second)]
        features = [tokens(self.backbone, view)[:, 0] for view in views]
        with torch.no_grad():
            keys = [self.momentum_projector(tokens(self.momentum_backbone, view)[:, 0]) for view in views]
        queries = [self.predictor(self.projector(feature)) for feature in features]
        first, accuracy = self._contrast(queries[0], keys[1])
        second, _ = self._contrast(queries[1], keys[0])
        return first + second, {"accuracy": accuracy, "spread": spread(features[0])}

    def _contrast(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """InfoNCE within the batch, times twice the temperature as in the paper's code, and its accuracy."""
        logits = cosines(queries, keys) / self.recipe.temperature
        own = torch.arange(len(logits), device=logits.device)
        loss = 2 * self.recipe.temperature * nn.functional.cross_entropy(logits, own)
        return loss, right(logits, own)

    def after_update(self, moment: Moment) -> None:
        momentum = cosine_schedule(self.recipe.momentum, 1.0, moment.share)
        follow(self.momentum_backbone, self.backbone, momentum)
        follow(self.momentum_projector, self.projector, momentum)
