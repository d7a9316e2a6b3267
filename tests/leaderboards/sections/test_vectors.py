"""Kinds of vectors side by side: which columns have a figure, and what it has."""

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.sections.features import vector_blocks
from tests.leaderboards.builder import frame, layers

FEW = {"task": "fewshot", "metric": "top1-10shot", "backbone": "mini-dino"}
MEANS = layers([15.0, 30.0], **FEW, pooling="mean", primary=False)
TOKENS = {"task": "token-probes", "metric": "fewshot-10", "pooling": "token", "backbone": "mini-dino"}


def test_each_backbone_has_a_panel_and_each_kind_of_vectors_a_line() -> None:
    *_, plot = vector_blocks(Board.of(frame(layers([10.0, 20.0], **FEW), MEANS, layers([5.0]))))
    assert plot.frame.to_numpy().tolist() == [
        *(["mini-dino", "class token", layer, 10.0 * layer] for layer in (1, 2)),
        *(["mini-dino", "mean of the patch tokens", layer, 15.0 * layer] for layer in (1, 2)),
    ]


def test_probes_of_single_tokens_stand_beside_those_of_vectors() -> None:
    ranked, other = layers([10.0, 20.0], **FEW), layers([9.0], **TOKENS | {"backbone": "mini-mae"})
    *_, plot = vector_blocks(Board.of(frame(ranked, MEANS, layers([1.0, 2.0], **TOKENS), other)))
    assert plot.name == "fewshot.mini-imagenet.standard.top1-10shot.vectors"
    assert plot.frame["series"].unique()[-1] == "one patch token"
    assert set(plot.frame["panel"]) == {"mini-dino"}
    assert plot.frame["y"].tolist()[-2:] == [1, 2]
    assert vector_blocks(Board.of(frame(layers([10.0, 20.0])))) == []  # one kind of vectors
