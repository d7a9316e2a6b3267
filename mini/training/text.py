"""Captions for CLIP: a vocabulary of words, and a small causal transformer over them."""

import re
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from mini.training.heads import transformer
from zoo.errors import InputError

_WORD = re.compile(r"\w+|[^\w\s]")
PAD, UNKNOWN, START, END = range(4)
"""What is not a word: filling, words never seen, and the two ends of a caption."""


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
        self._rows: dict[str, list[int]] = {}
        self.length = 2 + max(len(caption) for caption in split)

    def __len__(self) -> int:
        return len(self._numbers) + END + 1

    def encode(self, captions: Sequence[str]) -> Tensor:
        """Numbers of the words between start and end, filled up, int64 [captions length]; cut if longer."""
        for caption in captions:
            if caption not in self._rows:
                self._rows[caption] = self._row(caption)
        return torch.tensor([self._rows[caption] for caption in captions])

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
        mask = torch.full((length, length), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, words: Tensor) -> Tensor:
        """Features of captions, [batch width], from the numbers of their words [batch length]."""
        mask = self.get_buffer("mask")
        hidden = self.body(self.words(words) + self.positions.weight, mask=mask, is_causal=True)
        ends = (words == END).int().argmax(dim=1)
        return torch.as_tensor(hidden[torch.arange(len(words), device=words.device), ends])
