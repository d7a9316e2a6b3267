"""FS: a Vision Transformer learns class labels.

Source: Dosovitskiy et al., arXiv:2010.11929, with light augmentation (Steiner et al., arXiv:2106.10270).

The variants are those of interventional studies (Raghu et al., arXiv:2108.08810): the average of the patch
tokens instead of the class token before the classifier, or one block without its skip connections.
"""

from dataclasses import dataclass
from typing import Literal

from torch import nn
from transformers import PreTrainedModel

from mini.training.augment import TrainingView
from mini.training.data import Examples, Pictures, seeded
from mini.training.heads import right
from mini.training.network import fresh, initialise, spread, tokens
from mini.training.objective import Moment, Objective, StepOutcome
from mini.training.optimise import Optimisation
from zoo.errors import InputError
from zoo.load.skips import WITHOUT_SKIP, remove_skips
from zoo.spec import BackboneSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Numbers of the objective.

    Attributes:
        optimisation: How weights move.
        view: What the network sees.
        pooling: What the classifier sees; the class token stays in the network either way.
        no_skip: Block (from 1) without skip connections; None for all with.
    """

    optimisation: Optimisation
    view: TrainingView
    pooling: Literal["cls", "mean"]
    no_skip: int | None


RECIPE = Recipe(
    optimisation=Optimisation(learning_rate=2e-3, weight_decay=0.05),
    view=TrainingView(side=48, scale=(0.5, 1.0), flip=0.5),
    pooling="cls",
    no_skip=None,
)


class Supervised(Objective):
    """Cross-entropy of a linear classifier on one token."""

    def __init__(self, spec: BackboneSpec, backbone: PreTrainedModel, recipe: Recipe, classes: int) -> None:
        super().__init__(spec, backbone, recipe.optimisation)
        self.recipe = recipe
        self.classifier = nn.Linear(spec.width, classes)

    def forward(self, batch: Examples, moment: Moment) -> StepOutcome:
        """Loss of a batch; metrics: accuracy on it, and the spread of the pooled features."""
        found = tokens(self.backbone, self.view(batch, self.recipe.view, moment))
        pooled = found[:, 0] if self.recipe.pooling == "cls" else found[:, 1:].mean(dim=1)
        logits = self.classifier(pooled).float()
        loss = nn.functional.cross_entropy(logits, batch.labels)
        return StepOutcome(loss, {"accuracy": right(logits, batch.labels), "spread": spread(pooled)})


def require_block(spec: BackboneSpec, block: int) -> None:
    """Raise InputError where an entry has no block of that number (from 1)."""
    if not 1 <= block <= spec.depth:
        raise InputError(f"{spec.name} has blocks 1 to {spec.depth}; there is no block {block}")


def make(spec: BackboneSpec, recipe: Recipe, data: Pictures, seed: int) -> Supervised:
    """The objective with fresh weights.

    Raises:
        InputError: There is no such block.
    """
    backbone = fresh(spec, seed)
    if recipe.no_skip is not None:
        require_block(spec, recipe.no_skip)
        remove_skips(backbone.layers[recipe.no_skip - 1])
        setattr(backbone.config, WITHOUT_SKIP, [recipe.no_skip])
    objective = Supervised(spec, backbone, recipe, data.classes)
    initialise(objective.classifier, seeded("head", spec.name, seed))
    return objective
