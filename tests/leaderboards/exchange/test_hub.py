"""Evaluation results for model cards, read back with the Hub's own classes."""

import pytest
from huggingface_hub import ModelCard

from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.exchange.hub import model_indices
from tests.leaderboards.builder import floor, frame, layers, unsure

KNN = {"data": "d1"}
SPAIR = {"task": "spair", "dataset": "mini-spair", "metric": "PCK@0.1", "pooling": "grid", "split": "test"}
PARTIAL = {"partial": True, "coverage": "9 of 10: {pairs} # & 'quoted'"}


@pytest.fixture
def records():
    return frame(
        unsure(layers([50.0, 61.23456, 61.0], **KNN)),
        layers([5.0, 4.0, 3.0], **SPAIR, **PARTIAL),
        layers([70.0], backbone="owner/net: a #1", **KNN),
        layers([80.0], backbone="untrained", trained=False, **KNN),
        floor([1.0, 2.0], **KNN),
    )


def test_the_front_matter_of_a_model_card_is_read_by_the_hub(records):
    found = model_indices(Board.of(records))
    assert set(found) == {"mini-dino", "owner/net: a #1"}
    card = ModelCard(f"---\n{found['mini-dino']}---\n# A card\n")
    assert card.data.model_name == "mini-dino"
    knn, spair = card.data.eval_results
    assert (knn.task_type, knn.dataset_type, knn.metric_type) == (
        "image-feature-extraction",
        "mini-imagenet",
        "accuracy",
    )
    assert (knn.metric_value, knn.dataset_split) == (61.2346, "train, val")
    assert knn.metric_args["layer"] == 2
    assert knn.metric_args["confidence_interval_95"] == [60.4346, 62.0346]
    assert knn.dataset_args == {"data": "d1"}
    assert (spair.metric_value, spair.metric_args["pooling"]) == (5.0, "grid")
    assert spair.dataset_args == {"partial": PARTIAL["coverage"]}
    assert "confidence_interval_95" not in spair.metric_args
    assert ModelCard(f"---\n{found['owner/net: a #1']}---\n").data.model_name == "owner/net: a #1"


def test_two_tasks_on_one_dataset_are_told_apart():
    both = [layers([61.0], **KNN), layers([63.0], task="linear", partial=True, coverage="9 of 10", **KNN)]
    (text,) = model_indices(Board.of(frame(*both))).values()
    results = ModelCard(f"---\n{text}---\n").data.eval_results
    assert [(each.dataset_config, each.metric_value) for each in results] == [
        ("knn, standard, d1", 61.0),
        ("linear, standard, d1", 63.0),
    ]
    assert [each.dataset_args for each in results] == [{"data": "d1"}, {"data": "d1", "partial": "9 of 10"}]
