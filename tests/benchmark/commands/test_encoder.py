"""A layer as a transformer of scikit-learn, alone, in pipelines and in searches."""

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from layerboard import InputError, LayerEncoder, load


def photos(count: int) -> list[Image.Image]:
    random = np.random.default_rng(0)
    shades = np.array([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2]])
    every = (random.integers(0, 255, (40, 50, 3)) * shades[number % 2] for number in range(count))
    return [Image.fromarray(each.astype(np.uint8)) for each in every]


def test_vectors_are_those_of_load_for_every_kind_of_images(tmp_path: Path) -> None:
    images, encoder = photos(3), LayerEncoder("mini-dino", layer=9)
    expected = load("mini-dino", layer=9)(images).numpy()
    paths = [tmp_path / f"{number}.png" for number in range(3)]
    for path, image in zip(paths, images, strict=True):
        image.save(path)
    arrays = np.stack([np.asarray(image) for image in images])
    for given in (images, paths, arrays, list(arrays), iter(images), pd.Series(paths), pd.DataFrame(paths)):
        found = encoder.fit_transform(given)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clone(encoder))).transform(arrays), found)


def test_a_search_chooses_the_layer_in_a_pipeline(tmp_path: Path) -> None:
    paths, labels = [tmp_path / f"{number}.png" for number in range(12)], ["red", "green"] * 6
    for path, image in zip(paths, photos(12), strict=True):
        image.save(path)
    frame = pd.DataFrame({"photo": paths, "weight": range(12)})
    columns = ColumnTransformer([("vector", LayerEncoder("mini-dino"), ["photo"])], remainder="passthrough")
    pipeline = make_pipeline(columns, LogisticRegression())
    search = GridSearchCV(pipeline, {"columntransformer__vector__layer": [3, 9]}, cv=2).fit(frame, labels)
    assert search.predict(frame).tolist() == labels
    names = search.best_estimator_[0].get_feature_names_out()
    layer = search.best_params_["columntransformer__vector__layer"]
    assert [*names[:1], names[-1]] == [f"vector__mini-dino_{layer}_cls_0", "remainder__weight"]
    assert len(names) == 97


def test_names_of_numbers_make_a_data_frame() -> None:
    frame = LayerEncoder("mini-resnet", layer=3).set_output(transform="pandas").transform(photos(2))
    assert frame.shape == (2, load("mini-resnet", layer=3).dim)
    assert frame.columns[1] == "mini-resnet_3_mean_1"


def test_it_is_an_estimator() -> None:
    from sklearn.utils.estimator_checks import check_estimator  # imports all kinds of estimators

    with pytest.warns(UserWarning, match="Can't test estimator LayerEncoder which requires input"):
        results = check_estimator(LayerEncoder("mini-dino"), on_fail=None)
    assert {one["status"] for one in results} == {"passed"}


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: LayerEncoder("mini-dimo").fit(), "'mini-dimo'"),
        (lambda: LayerEncoder("mini-dino", layer=13).fit(), "has no layer 13"),
        (lambda: LayerEncoder("mini-dino", pooling="grid").fit(), "one vector, not grid"),
        (lambda: LayerEncoder("mini-resnet", pooling="cls").fit(), "has no class token"),
        (lambda: LayerEncoder("mini-dino").transform([np.zeros((8, 8))]), "arrays uint8"),
        (lambda: LayerEncoder("mini-dino").transform([[0.5, 0.1]]), "found a list"),
        (lambda: LayerEncoder("mini-dino").transform(pd.DataFrame({"a": [1], "b": [2]})), "one column"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(fit: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        fit()
