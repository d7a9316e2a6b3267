"""What tasks keep of their examples, on planted features whose neighbours, points and masks are known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from layerboard.tasks.datasets.davis import DavisEntry
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.framework.examples import small_mask
from layerboard.tasks.propagation import task as propagation
from layerboard.zoo.spec import Layer
from tests.fakes import write_fake_davis
from tests.tasks.classification import test_knn
from tests.tasks.keypoints import test_problem as matched
from tests.tasks.propagation import test_task as test_propagation
from tests.tasks.retrieval import test_landmarks as test_retrieval


def test_knn_keeps_the_neighbours_and_the_class_of_its_queries() -> None:
    labels, queries = np.repeat([0, 1], 5), np.repeat([0, 1], 20)
    task = test_knn.problem(labels, queries, [0, 1, 2], replace(test_knn.SMALL, k=3, others=()))
    # training image i points at angle i; query q asks at the angle of image 0 or, of class 1, of image 3
    angles, asked = np.arange(10) / 10, np.where(queries == 0, 0.0, 0.31)
    bank, wanted = (np.stack([np.cos(a), np.sin(a)], axis=1).astype(np.float32) for a in (angles, asked))
    wanted[0] = np.nan
    outcome = task.score(test_knn.by_source(task, bank, wanted))
    facts, found = task.examples.facts(), outcome.predicted
    assert facts["query"].shape == (16,)
    assert found["neighbour"].shape == (16, 3)
    near = {"n00000000": [0, 1, 2], "n00000001": [3, 4, 2]}
    for place, (query, true) in enumerate(zip(facts["query"], facts["class"], strict=True)):
        if query == "val/00000":
            assert found["predicted"][place] == ""
            assert not found["right"][place]
            continue
        assert found["neighbour"][place].tolist() == [f"train/{index:05d}" for index in near[str(true)]]
        assert found["neighbour_class"][place].tolist() == ["n00000000"] * 3
        assert found["predicted"][place] == "n00000000"  # images 3, 4 and 2 are of class 0
        assert bool(found["right"][place]) is (true == "n00000000")
    # every query is given class 0; the first one could not be read
    assert facts["classes"].tolist() == ["n00000000", "n00000001"]
    assert found["class_images"].tolist() == [19, 20]
    assert found["class_right"].tolist() == [19, 0]
    assert found["mistaken"][:2].tolist() == [[1, 0, 20], [0, 0, 0]]
    first, *others = found["mistaken_image"].tolist()
    assert task.images.val.labels[int(first.removeprefix("val/"))] == 1
    assert others == [""] * 5
    pictures = task.examples.pictures([found])
    assert set(pictures) == {*facts["query"].tolist(), first, *(f"train/{index:05d}" for index in range(5))}
    assert list(pictures)[:16] == list(dict.fromkeys(facts["query"].tolist()))


def test_retrieval_keeps_the_first_images_that_count() -> None:
    kinds = np.array([[0], [test_retrieval.JUNK], [test_retrieval.HARD], [test_retrieval.EASY], [0], [0]])
    task = test_retrieval.problem(kinds)
    angles = np.arange(6) / 10
    database = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    outcome = task.score(test_retrieval.vectors(task, database, database[:1]))
    assert outcome.predicted["neighbour"].tolist() == [["d0", "d2", "d3", "d4"]]
    assert outcome.predicted["kind"].tolist() == [["wrong", "hard", "easy", "wrong"]]
    assert outcome.items is not None
    assert np.allclose(outcome.predicted["average_precision"], outcome.items.values["mAP medium"])
    assert task.examples.facts()["positives"].tolist() == [2]


def test_retrieval_keeps_no_query_without_a_positive() -> None:
    kinds = np.ones((8, 40), np.int64)
    kinds[:, 10:] = 0
    places = test_retrieval.problem(kinds).examples.places
    assert places == tuple(range(10))
    assert len(test_retrieval.problem(np.ones((8, 40), np.int64)).examples.places) == 12


def test_keypoints_keep_where_the_points_went() -> None:
    task = matched.random_problem(3)
    grids = matched.random_grids(4)
    left = matched.measured(task, {Layer(1): grids.clone()}, batch=2)[Layer(1)]
    outcome, facts = task.score(left), task.examples.facts()
    assert outcome.items is not None
    points, errors = outcome.predicted["point"], np.concatenate([one["error_image"] for one in left])
    sizes = facts["target_size"].max(axis=1)[facts["of_pair"]]
    missed = np.hypot(*(points - facts["target_point"]).T)
    assert len(facts["pair"]) == len(task.data.pairs) < 16  # all of these few are kept
    assert np.allclose(missed, errors * sizes, atol=0.02)
    hits = outcome.items.values["PCK@0.1"] > 0
    assert (outcome.predicted["right"] == hits).all()
    assert list(task.examples.pictures([])) == list(
        dict.fromkeys(key for side in ("source", "target") for key in facts[side].tolist())
    )


def test_of_many_pairs_a_few_are_kept_and_the_scores_stay() -> None:
    task = matched.random_problem(5)
    many = replace(
        task.data, pairs=tuple(replace(p, key=f"{p.key} {n}") for n in range(9) for p in task.data.pairs)
    )
    large = type(task)(many, task.config)
    grids = matched.random_grids(6)
    left = matched.measured(large, {Layer(1): grids.clone()}, batch=6)[Layer(1)]
    outcome, facts = large.score(left), large.examples.facts()
    assert len(facts["pair"]) == 16
    assert set(facts["category"].tolist()) == {"cat", "dog"}
    assert outcome.predicted["point"].shape == (len(facts["of_pair"]), 2)
    alone = matched.measured(task, {Layer(1): grids.clone()}, batch=6)[Layer(1)]
    assert outcome.scores[0].value == task.score(alone).scores[0].value


def test_propagation_keeps_small_masks_of_two_frames(tmp_path: Path) -> None:
    write_fake_davis(tmp_path, sequences=2, frames=7)
    data = DavisEntry(sequences=2, frames=14, objects=4).read(tmp_path)
    task = test_propagation.PropagationTask(data, test_propagation.RULE)
    layer, left = Layer(1), []
    for number, video in enumerate(data.videos):
        # every token is alike in all frames and unlike all others: the first mask stays where it is
        height, width = test_propagation.grid_size(video)
        grids = torch.eye(height * width).view(1, height, width, -1).expand(7, -1, -1, -1).contiguous()
        left.append(test_propagation.measured(task, number, {layer: grids}, batch=3)[layer])
    outcome, facts = task.score(left), task.examples.facts()
    assert facts["position"].tolist() == [3, 5] * 2
    assert propagation.FRAMES == 2
    masks = outcome.predicted["mask"]
    assert masks.shape == facts["truth"].shape
    assert masks.dtype == np.uint8
    assert (masks[0] == masks[1]).all()
    for place, video in enumerate(data.videos):
        assert (facts["given"][2 * place] == small_mask(read_mask(video.masks[0]))).all()
        shown = small_mask(read_mask(video.masks[0]))
        assert (masks[2 * place] == shown)[shown != 255].mean() > 0.8
    both = [(100 * (one["J"] + one["F"]) / 2)[:, [2, 4]].mean(axis=0) for one in left]
    assert np.allclose(outcome.predicted["score"], np.concatenate(both), atol=1e-4)
    wanted = [data.videos[0].frames[place].key for place in (0, 3, 5)]
    assert list(task.examples.pictures([]))[:3] == wanted
