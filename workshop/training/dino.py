"""DINO: a student sees crops and predicts what a momentum teacher says of the whole image.

Source: Caron et al., arXiv:2104.14294.
"""

import copy
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView
from workshop.training.data import Examples, Pictures, seeded
from workshop.training.network import Prototypes, fresh, initialise, spread, tokens
from workshop.training.objective import Moment, Objective, Optimisation, cosine_schedule, follow

# As MoCo-v3's here: views of 16 patches and of 4, strongly changed in colour. With larger views and milder
# colours (48 and 24 pixels, no grey, no blur), 10,000 steps taught k-NN 28 % of the classes.
_LARGE = TrainingView(side=32, scale=(0.3, 1.0), flip=0.5, jitter=0.8, hue=0.05, grey=0.1, blur=0.3)


@dataclass(frozen=True, slots=True, kw_only=True)
class DinoRecipe:
    """Numbers of the objective."""

    optimisation: Optimisation = Optimisation(
        learning_rate=2e-3, weight_decay=0.04, final_weight_decay=0.4, clip=3.0
    )
    first: TrainingView = _LARGE
    second: TrainingView = replace(_LARGE, blur=0.1, solarise=0.2)
    small: TrainingView = replace(_LARGE, side=16, scale=(0.08, 0.3), blur=0.1)
    small_views: int = 4
    hidden: int = 512  # channels inside the head
    bottleneck: int = 128  # channels before the prototypes
    outputs: int = 256  # prototypes
    student_temperature: float = 0.1  # of the student's soft-max
    # of the teacher's soft-max, at first and after `teacher_warmup`
    teacher_temperature: tuple[float, float] = (0.04, 0.04)
    teacher_warmup: float = 0.3  # share of the steps over which it rises linearly
    momentum: float = 0.99  # of the teacher at first; it rises to 1 on a cosine
    centre_momentum: float = 0.9  # of the average of the teacher's outputs
    frozen: float = 0.02  # share of the steps in which the prototypes do not move


class SelfDistillation(Objective):
    """Cross-entropy between the teacher's view of an image and the student's other views of it.

    The teacher is what is exported, as in the published checkpoints.
    """

    def __init__(self, spec: BackboneSpec, recipe: DinoRecipe, data: Pictures, seed: int) -> None:
        student = fresh(spec, seed)
        super().__init__(spec, copy.deepcopy(student).requires_grad_(False), recipe.optimisation)
        self.recipe, self.student = recipe, student
        self.student_head = head = Prototypes(spec.width, recipe.hidden, recipe.bottleneck, recipe.outputs)
        initialise(head, seeded("head", spec.name, seed))
        prototypes = seeded("prototypes", spec.name, seed)
        nn.init.trunc_normal_(head.directions.weight, std=0.02, generator=prototypes)
        self.teacher_head = copy.deepcopy(head).requires_grad_(False)
        self.centre: Tensor
        self.register_buffer("centre", torch.zeros(recipe.outputs))

    def crops(self, batch: Examples, moment: Moment) -> tuple[Tensor, Tensor]:
        """Large views [2*batch 3 side side] and small ones [small_views*batch 3 side side], view by view."""
        recipe = self.recipe
        large = [self.view(batch, view, moment) for view in (recipe.first, recipe.second)]
        small = [self.view(batch, recipe.small, moment) for _ in range(recipe.small_views)]
        return torch.cat(large), torch.cat(small) if small else large[0][:0]

    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch; metrics tell both ways of collapse.

        ``entropy``: that of the teacher's outputs by the logarithm of their number; 1 if it cannot tell
        prototypes apart, 0 if each output is certain. ``used``: the same of their average over the batch; 0
        if all images get the same prototype. ``spread``: of the teacher's class tokens.
        """
        recipe, count = self.recipe, len(batch.images)
        large, small = self.crops(batch, moment)
        teacher, features = self._teach(large, moment.share)
        student = [self.student_head(tokens(self.student, large)[:, 0])]
        if recipe.small_views:
            student.append(self.student_head(tokens(self.student, small)[:, 0]))
        logs = (torch.cat(student) / recipe.student_temperature).log_softmax(-1)
        terms = [
            -(target * log).sum(-1).mean()
            for view, target in enumerate(torch.split(teacher, count))
            for other, log in enumerate(torch.split(logs, count))
            if other != view
        ]
        entropy, used = _entropy(teacher).mean(), _entropy(teacher.mean(0))
        return torch.stack(terms).mean(), {"entropy": entropy, "used": used, "spread": spread(features)}

    @torch.no_grad()
    def _teach(self, large: Tensor, share: float) -> tuple[Tensor, Tensor]:
        """The teacher's probabilities [2*batch outputs] and class tokens; moves the centre."""
        recipe = self.recipe
        features = tokens(self.backbone, large)[:, 0]
        outputs = self.teacher_head(features)
        first, last = recipe.teacher_temperature
        temperature = first + (last - first) * min(1.0, share / recipe.teacher_warmup)
        probabilities = ((outputs - self.centre) / temperature).softmax(-1)
        self.centre.lerp_(outputs.mean(0), 1 - recipe.centre_momentum)
        return probabilities, features

    def before_update(self, moment: Moment) -> None:
        if moment.share < self.recipe.frozen:
            self.student_head.directions.weight.grad = None

    def after_update(self, moment: Moment) -> None:
        momentum = cosine_schedule(self.recipe.momentum, 1.0, moment.share)
        follow(self.backbone, self.student, momentum)
        follow(self.teacher_head, self.student_head, momentum)


def _entropy(probabilities: Tensor) -> Tensor:
    """Entropy over the last dimension as a share of the largest possible one."""
    return torch.as_tensor(torch.special.entr(probabilities).sum(-1) / math.log(probabilities.shape[-1]))
