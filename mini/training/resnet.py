"""ResNet: a convolutional network with bottleneck blocks learns class labels.

Source: He et al., arXiv:1512.03385.
"""

from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedModel

from mini.training.augment import TrainingView
from mini.training.data import Examples, Pictures, seeded
from mini.training.heads import right
from mini.training.network import fresh, initialise, spread, vectors
from mini.training.objective import Moment, Objective, StepOutcome
from mini.training.optimise import Optimisation
from zoo.spec import BackboneSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Numbers of the objective: SGD with momentum 0.9 and a learning rate of 0.1 for batches of 256."""

    optimisation: Optimisation
    view: TrainingView


RECIPE = Recipe(
    optimisation=Optimisation(
        kind="sgd", learning_rate=0.1, betas=(0.9, 0.0), weight_decay=1e-4, warmup=0.05, clip=None
    ),
    view=TrainingView(side=48, scale=(0.5, 1.0), flip=0.5),
)


class ResNetClassifier(Objective):
    """Cross-entropy of a linear classifier on the global average."""

    def __init__(self, spec: BackboneSpec, backbone: PreTrainedModel, recipe: Recipe, classes: int) -> None:
        super().__init__(spec, backbone, recipe.optimisation)
        self.recipe = recipe
        self.classifier = nn.Linear(spec.width, classes)

    def forward(self, batch: Examples, moment: Moment) -> StepOutcome:
        """Loss of a batch; metrics: accuracy on it, and the spread of the pooled features."""
        pooled = vectors(self.backbone, self.view(batch, self.recipe.view, moment))["mean"]
        logits = self.classifier(pooled).float()
        loss = nn.functional.cross_entropy(logits, batch.labels)
        return StepOutcome(loss, {"accuracy": right(logits, batch.labels), "spread": spread(pooled)})


def make(spec: BackboneSpec, recipe: Recipe, data: Pictures, seed: int) -> ResNetClassifier:
    """The objective with fresh weights."""
    objective = ResNetClassifier(spec, fresh(spec, seed), recipe, data.classes)
    initialise(objective.classifier, seeded("head", spec.name, seed))
    return objective
