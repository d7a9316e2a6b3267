"""A layer of a frozen backbone as a transformer of scikit-learn: `layerboard.LayerEncoder`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from layerboard.benchmark.commands.load import LoadRequest, cached_load
from layerboard.benchmark.forms.option import called_with
from layerboard.zoo.errors import ensure
from layerboard.zoo.features.cut import CutBackbone


class LayerEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Vectors of one layer of a frozen backbone, as a transformer for pipelines of scikit-learn.

    It maps images (Pillow images, paths, arrays uint8 [height width channels], or a column of a data frame
    with these) to float32 vectors [images dim]. Nothing is fitted: ``fit`` only loads the backbone, which
    copies for folds and parallel jobs share or load again. The parameters are those of `layerboard.load`,
    so that a grid search can choose the layer and the pooling.

    Example:
        >>> import layerboard
        >>> from PIL import Image
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> images = [Image.new("RGB", (64, 64), colour) for colour in ("red", "green")]
        >>> pipeline = make_pipeline(layerboard.LayerEncoder("mini-dino", layer=9), LogisticRegression())
        >>> pipeline.fit(images, ["ripe", "unripe"]).predict(images[:1]).tolist()
        ['ripe']

    Options:
        backbone: A name, a Hub id, a directory, onnx:FILE, or a Python object.
        layer: Block after which the backbone ends, or 'final'. Default: the last block.
        pooling: Pooling of `layerboard.load` that gives an image one vector. Default: auto.
        input_size: Side in pixels, rounded to the patch size. Default: its own.
        dtype: Dtype of the forward pass. Default: float32.
        device: Device of the forward passes: auto, cpu, cuda or cuda:N. Default: auto.
    """

    def __init__(
        self,
        backbone: str | Path,
        layer: int | str | None = None,
        pooling: str = "auto",
        *,
        input_size: int | None = None,
        dtype: str = "float32",
        device: str = "auto",
    ) -> None:
        self.backbone, self.layer, self.pooling = backbone, layer, pooling
        self.input_size, self.dtype, self.device = input_size, dtype, device

    def fit(self, X: object = None, y: object = None) -> Self:  # noqa: N803  # scikit-learn's name
        """Load the backbone; raises InputError if the backbone, layer or pooling does not exist."""
        del X, y
        self._cut()
        return self

    def transform(self, X: object) -> NDArray[np.float32]:  # noqa: N803
        """Vectors float32 [images dim] of images; raises InputError if one cannot be read."""
        vectors: NDArray[np.float32] = self._cut()(_column(X)).cpu().numpy()
        return vectors

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the numbers of a vector: backbone, layer, pooling, index, as in ``mini-dino_9_cls_0``."""
        del input_features
        cut = self._cut()
        start = f"{cut.spec.name}_{cut.layer}_{cut.pooling}"
        return np.array([f"{start}_{index}" for index in range(cut.dim)], dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.requires_fit = False
        tags.no_validation = True  # images are checked where they are read
        return tags

    def _cut(self) -> CutBackbone:
        ensure(self.pooling != "grid", "pooling takes one that gives an image one vector, not grid")
        parameters = self.get_params()
        return _cached_load(parameters.pop("backbone"), **parameters)


_cached_load = called_with(LoadRequest)(cached_load)


def _column(images: Any) -> Iterable[Any] | torch.Tensor:  # noqa: ANN401
    """The images of a column of a data frame, or of an array of objects; others as they are."""
    if isinstance(images, pd.DataFrame | pd.Series):
        images = images.to_numpy(dtype=object)
    if isinstance(images, np.ndarray) and images.dtype == object and images.ndim > 1:
        ensure(images.shape[1] == 1, f"expected one column of images, found {images.shape[1]}")
        images = images[:, 0]
    column: Iterable[Any] | torch.Tensor = images
    return column
