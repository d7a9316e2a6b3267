"""FS and ResNet: a Vision Transformer, or a convolutional network, learns class labels.

Source: Dosovitskiy et al., arXiv:2010.11929, with light augmentation (Steiner et al., arXiv:2106.10270).

The variants are those of interventional studies (Raghu et al., arXiv:2108.08810): the average of the patch
tokens instead of the class token before the classifier, or one block without its skip connections.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor, nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.adapters import WITHOUT_SKIP, remove_skips
from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView
from workshop.training.data import Examples, Pictures, seeded
from workshop.training.network import fresh, initialise, pooled_vectors, right, spread
from workshop.training.objective import Moment, Objective, Optimisation


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedRecipe:
    """Numbers of the objective."""

    optimisation: Optimisation = Optimisation(learning_rate=2e-3, weight_decay=0.05)
    view: TrainingView = TrainingView(side=48, scale=(0.5, 1.0), flip=0.5)  # what the network sees
    # what the classifier sees; the class token stays in the network either way
    pooling: Literal["cls", "mean"] = "cls"
    no_skip: int | None = None  # block (from 1) without skip connections; None for all with


@dataclass(frozen=True, slots=True, kw_only=True)
class ResNetRecipe:
    """Numbers of a ResNet's training, whose classifier sees the global average.

    SGD with momentum 0.9 and a learning rate of 0.1 for batches of 256 (He et al., arXiv:1512.03385).
    """

    optimisation: Optimisation = Optimisation(
        kind="sgd", learning_rate=0.1, betas=(0.9, 0.0), weight_decay=1e-4, warmup=0.05, clip=None
    )
    view: TrainingView = TrainingView(side=48, scale=(0.5, 1.0), flip=0.5)
    pooling: ClassVar[str] = "mean"
    no_skip: ClassVar[None] = None


class Supervised(Objective):
    """Cross-entropy of a linear classifier on one vector of an image, the class token or the average."""

    def __init__(
        self, spec: BackboneSpec, recipe: SupervisedRecipe | ResNetRecipe, data: Pictures, seed: int
    ) -> None:
        super().__init__(spec, fresh(spec, seed), recipe.optimisation)
        self.recipe = recipe
        if recipe.no_skip is not None:
            require_block(spec, recipe.no_skip)
            remove_skips(self.backbone.layers[recipe.no_skip - 1])
            setattr(self.backbone.config, WITHOUT_SKIP, [recipe.no_skip])
        self.classifier = nn.Linear(spec.width, data.classes)
        initialise(self.classifier, seeded("head", spec.name, seed))

    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch; metrics: accuracy on it, and the spread of the pooled features."""
        pooled = pooled_vectors(self.backbone, self.view(batch, self.recipe.view, moment))[
            self.recipe.pooling
        ]
        logits = self.classifier(pooled).float()
        loss = nn.functional.cross_entropy(logits, batch.labels)
        return loss, {"accuracy": right(logits, batch.labels), "spread": spread(pooled)}


def require_block(spec: BackboneSpec, block: int) -> None:
    """Raise InputError where an entry has no block of that number (from 1)."""
    if not 1 <= block <= spec.depth:
        raise InputError(f"{spec.name} has blocks 1 to {spec.depth}; there is no block {block}")
