"""CLIP: images and captions find each other in a batch (Radford et al., arXiv:2103.00020).

The text tower is a small causal transformer over a vocabulary of words. The only augmentation is a random
crop, as in the paper: captions speak of left, right and colours.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec
from workshop.training.augment import TrainingView
from workshop.training.data import Examples, Pictures, seeded
from workshop.training.network import cosines, fresh, initialise, right, spread, tokens, transformer
from workshop.training.objective import Moment, Objective, Optimisation

_WORD = re.compile(r"\w+|[^\w\s]")
# what is not a word: filling, words never seen, and the two ends of a caption
PAD, UNKNOWN, START, END = range(4)


class Vocabulary:
    """Numbers for the words of captions, in alphabetical order after the four special ones."""

    def __init__(self, captions: Iterable[str]) -> None:
        split = [_WORD.findall(caption.lower()) for caption in captions]
        words = sorted({word for caption in split for word in caption})
        if not words:
            raise InputError(
                "the captions have no words; CLIP learns from captions, so give images with some"
            )
        self._numbers = {word: number for number, word in enumerate(words, END + 1)}
        self.length = 2 + max(len(caption) for caption in split)

    def __len__(self) -> int:
        return len(self._numbers) + END + 1

    def encode(self, captions: Sequence[str]) -> Tensor:
        """Numbers of the words between start and end, filled up, int64 [captions length]; cut if longer."""
        return torch.tensor([self._row(caption) for caption in captions])

    def _row(self, caption: str) -> list[int]:
        words = _WORD.findall(caption.lower())[: self.length - 2]
        numbers = [START, *(self._numbers.get(word, UNKNOWN) for word in words), END]
        return numbers + [PAD] * (self.length - len(numbers))


class TextTower(nn.Module):
    """A causal transformer whose output at the end of a caption stands for it (Radford et al., 2021)."""

    def __init__(self, words: int, length: int, width: int, depth: int, heads: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(length, width)
        self.body = transformer(width, depth, heads)
        self.register_buffer("mask", torch.full((length, length), float("-inf")).triu(1), persistent=False)

    def forward(self, words: Tensor) -> Tensor:
        """Features of captions, [batch width], from the numbers of their words [batch length]."""
        mask = self.get_buffer("mask")
        hidden = self.body(self.words(words) + self.positions.weight, mask=mask, is_causal=True)
        ends = (words == END).int().argmax(dim=1)
        return torch.as_tensor(hidden[torch.arange(len(words), device=words.device), ends])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClipRecipe:
    """Numbers of the objective."""

    optimisation: Optimisation = Optimisation(learning_rate=1.5e-3, weight_decay=0.2, betas=(0.9, 0.98))
    view: TrainingView = TrainingView(side=48, scale=(0.6, 1.0))  # what the network sees
    text_width: int = 96  # channels of the text tower
    text_depth: int = 3  # its blocks
    text_heads: int = 3  # its attention heads
    shared: int = 96  # channels of the space in which images and captions meet
    temperature: float = 0.07  # of the soft-max at the start; it is learned
    largest_scale: float = 100.0  # bound of one by the temperature


class ImageText(Objective):
    """Symmetric cross-entropy over the cosines of all images and captions of a batch."""

    def __init__(self, spec: BackboneSpec, recipe: ClipRecipe, data: Pictures, seed: int) -> None:
        super().__init__(spec, fresh(spec, seed), recipe.optimisation)
        self.recipe = recipe
        self.vocabulary = words = Vocabulary(data.captions)
        shape = recipe.text_width, recipe.text_depth, recipe.text_heads
        self.text = TextTower(len(words), words.length, *shape)
        self.image_projection = nn.Linear(spec.width, recipe.shared, bias=False)
        self.text_projection = nn.Linear(recipe.text_width, recipe.shared, bias=False)
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / recipe.temperature)))
        heads = nn.ModuleList((self.text, self.image_projection, self.text_projection))
        initialise(heads, seeded("head", spec.name, seed))

    def embed_images(self, images: Tensor) -> Tensor:
        """Points of normalised images, [batch shared]."""
        return torch.as_tensor(self.image_projection(tokens(self.backbone, images)[:, 0]))

    def embed_captions(self, captions: tuple[str, ...]) -> Tensor:
        """Points of captions, [batch shared]."""
        words = self.vocabulary.encode(captions).to(self.log_scale.device)
        return torch.as_tensor(self.text_projection(self.text(words)))

    def forward(self, batch: Examples, moment: Moment) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss of a batch; metrics: how often an image finds its caption, scale, and spread of the images."""
        images = self.embed_images(self.view(batch, self.recipe.view, moment))
        logits = self.log_scale.exp() * cosines(images, self.embed_captions(batch.captions))
        own = torch.arange(len(logits), device=logits.device)
        cross_entropy = nn.functional.cross_entropy
        loss = (cross_entropy(logits, own) + cross_entropy(logits.T, own)) / 2
        scale = self.log_scale.detach().exp()
        return loss, {"accuracy": right(logits, own), "scale": scale, "spread": spread(images)}

    def after_update(self, moment: Moment) -> None:
        with torch.no_grad():
            self.log_scale.clamp_(max=math.log(self.recipe.largest_scale))
