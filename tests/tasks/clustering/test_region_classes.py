"""Which classes cells show most of regions, and how pure the groups are that follow."""

import numpy as np
import pytest

from layerboard.tasks.clustering.kmeans import shown_classes, shown_purity
from layerboard.tasks.metrics.cell_labels import area_labels, cell_areas, cell_shares


def test_shares_are_exact_where_pixels_lie_in_several_cells() -> None:
    mask = np.array([[1, 0, 1], [0, 0, 1]], np.uint8)
    assert cell_areas(mask, (1, 2)).tolist() == [[2, 4]]  # of 6 units a cell
    assert cell_shares(mask, (1, 2)) == pytest.approx(np.array([[1 / 3, 2 / 3]]))
    assert cell_shares(np.ones((7, 5), np.uint8), (3, 4)) == pytest.approx(np.ones((3, 4)))
    labels = area_labels(np.array([[0, 2], [255, 1]], np.uint8), (1, 1), 4)
    assert labels.tolist() == [[[0.5, 0.25, 0.25, 0.0]]]


def test_the_class_of_the_largest_weighted_share_is_shown_and_of_equals_the_first() -> None:
    weights = np.array([[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]])
    shares = np.array([[[0.4, 0.1]], [[0.2, 0.3]], [[0.4, 0.0]]])
    assert shown_classes(weights, shares).tolist() == [0, 0, 1]


def test_of_more_groups_than_clusters_the_purest_count() -> None:
    classes, shown = np.array([1, 1, 2, 2, 2, 3]), np.array([1, 1, 2, 2, 2, 3])
    found = [shown_purity(classes, shown, k) for k in (1, 2, 3, 9)]
    assert found == pytest.approx([3 / 6, 5 / 6, 1, 1])
    assert shown_purity(classes, np.zeros(6, np.int64), 3) == 0.5
    with pytest.raises(ValueError, match="expected"):
        shown_purity(classes, shown[:3], 3)
