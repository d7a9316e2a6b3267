"""What attention gives to special tokens, from the maps of a pass to scores."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.analyses.attention_shares import AttentionShares
from tests.tasks.analyses.passes import found_in, outcome_of, probe, scores_of
from tests.tasks.analyses.test_attention_maps import reference
from tests.tasks.metrics.planted import agree, own
from zoo.errors import InputError
from zoo.spec import Layer

NAMES = ("entropy", "attention-to-cls", "attention-to-registers", "attention-to-self")


@pytest.mark.parametrize("name", ["random_7x7", "registers_5x9", "no_class_token_6x6", "zero_rows_4x4"])
def test_reference_cases(name: str, tmp_path: Path) -> None:
    layers, cells = reference(name)
    found = found_in(AttentionShares(probe(layers.shape[1], 32)), tmp_path, layers, cells)
    expected = own(name, "A6")
    for pooling in {each.pooling for each in found.outcomes}:
        for metric in NAMES:
            key = f"{metric.replace('-', '_')}_{pooling}"
            for index in range(len(layers)):
                scores = scores_of(found, index + 1, pooling)
                assert ((metric, 0) in scores) == (key in expected)
                if key in expected:
                    table = np.array(expected[key])[:, index]
                    agree([scores[metric, head] for head in range(layers.shape[2])], table.mean(axis=0))
                    agree(scores[metric, -1], table.mean())


def test_planted_heads(tmp_path: Path) -> None:
    half = 0.5 * torch.eye(197)
    half[:, 0] += 0.5
    heads = torch.stack([torch.full((197, 197), 1 / 197), torch.eye(197), half])
    found = found_in(AttentionShares(probe(1, 224)), tmp_path, heads[None, None], (14, 14))
    scores = scores_of(found, 1, "patch")
    assert [scores["attention-to-cls", head] for head in range(3)] == pytest.approx(
        [0.005076, 0, 0.5], abs=5e-7
    )
    assert [scores["attention-to-self", head] for head in range(3)] == pytest.approx(
        [0.005076, 1, 0.5], abs=5e-7
    )
    assert [scores["entropy", head] for head in range(3)] == pytest.approx([1, 0, 0.1312], abs=5e-5)
    assert scores_of(found, 1, "cls")["attention-to-cls", 1] == 1
    assert ("attention-to-registers", 0) not in scores


def test_attention_that_is_not_finite_and_images_that_are_not_there_say_why(tmp_path: Path) -> None:
    layers = torch.full((1, 2, 2, 5, 5), 0.2)
    layers[0, 1, 1, 3] = torch.nan
    task = AttentionShares(probe(2, 32))
    found = found_in(task, tmp_path, layers, (2, 2))
    assert outcome_of(found, 1, "patch").empty == "attention probabilities are not finite"
    assert scores_of(found, 1, "cls")["entropy", -1] == pytest.approx(1)
    with pytest.raises(InputError, match="expected images that can be decoded"):
        task.findings({Layer(1, "attention"): [{}]})
