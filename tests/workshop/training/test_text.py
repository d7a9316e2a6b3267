"""Words of captions, and the tower that reads them."""

import pytest
import torch

from layerboard.zoo.errors import InputError
from workshop.training.clip import END, PAD, START, UNKNOWN, TextTower, Vocabulary
from workshop.training.data import seeded
from workshop.training.network import initialise

CAPTIONS = ("A red fox, facing left", "a blue car")


def test_words_become_numbers() -> None:
    words = Vocabulary(CAPTIONS)
    assert len(words) == 4 + 8  # the comma is a word
    assert words.length == 2 + 6
    first, second = words.encode(CAPTIONS).tolist()
    assert (first[0], first[-1]) == (START, END)
    assert second[4:] == [END, PAD, PAD, PAD]
    assert first[1] == second[1]
    assert words.encode(["a green fox fox fox fox fox fox"]).tolist()[0][2] == UNKNOWN
    assert words.encode(["a green fox fox fox fox fox fox"]).tolist()[0][-1] == END


def test_captions_need_words() -> None:
    with pytest.raises(InputError, match="the captions have no words"):
        Vocabulary(["", " "])


def test_a_caption_is_read_up_to_its_end() -> None:
    words = Vocabulary(CAPTIONS)
    tower = TextTower(len(words), words.length, width=16, depth=2, heads=2)
    initialise(tower, seeded(0))
    numbers = words.encode(CAPTIONS)
    found = tower(numbers)
    assert found.shape == (2, 16)
    longer = numbers.clone()
    longer[1, 5:] = UNKNOWN
    torch.testing.assert_close(tower(longer), found)
    longer[1, 2] = UNKNOWN
    assert not torch.allclose(tower(longer)[1], found[1])
