import numpy as np
import pytest
import torch

from layerboard.tasks.similarity.metric import CkaAccumulator, centred_gram
from tests.tasks.agreement.similarity import batched, cka


def test_unrelated_wide_features_are_near_zero_unbiased_and_near_one_biased():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(16, 2000, generator=generator) for _ in range(2))
    assert abs(cka(x, y)) < 0.2
    assert cka(x, y, "biased") > 0.8


def test_layers_are_centred_at_once():
    layers = torch.randn(3, 8, 5, generator=torch.Generator().manual_seed(3))
    together = centred_gram(layers)
    assert together.dtype == torch.float64
    for layer, gram in zip(layers, together, strict=True):
        torch.testing.assert_close(centred_gram(layer), gram, rtol=0, atol=1e-5)
        np.testing.assert_allclose(gram.sum(dim=0), 0, atol=1e-5)
    assert (together.diagonal(dim1=1, dim2=2) == 0).all()


@pytest.mark.parametrize("min_max", [False, True])
def test_constant_features_are_not_defined(min_max):
    still = torch.full((8, 6), 0.1) * torch.arange(1, 7)
    moving = torch.randn(8, 3, generator=torch.Generator().manual_seed(4))
    found = batched([still, moving], 8, min_max=min_max)
    assert found.isnan().tolist() == [[True, True], [True, False]]
    assert np.isnan(cka(still, moving))


def test_there_is_no_matrix_without_a_batch():
    with pytest.raises(ValueError, match="at least one batch"):
        CkaAccumulator().matrix()


def drawn(generator, n):
    """Two representations of a shared signal, and an unrelated third, of n samples."""
    mixing = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(1))
    signal = torch.randn(n, 3, generator=generator)
    related = [
        signal @ mix + noise * torch.randn(n, 8, generator=generator)
        for mix, noise in zip(mixing, (0.7, 1.0), strict=True)
    ]
    return [*related, torch.randn(n, 5, generator=generator)]


def accumulated(features, batch):
    accumulator = CkaAccumulator(errors=True)
    for start in range(0, len(features[0]), batch):
        accumulator.add(torch.stack([centred_gram(values[start : start + batch]) for values in features]))
    return accumulator


@pytest.mark.parametrize(("n", "batch"), [(64, 64), (64, 16)])
def test_the_standard_error_is_the_spread_over_fresh_samples(n, batch):
    generator = torch.Generator().manual_seed(5)
    runs = [accumulated(drawn(generator, n), batch) for _ in range(100)]
    values = torch.stack([run.matrix() for run in runs])
    errors = torch.stack([run.standard_error() for run in runs])
    held = ((values - values.mean(0)).abs() <= 1.96 * errors).double().mean(0)
    assert 0.88 <= held[0, 1] <= 0.97  # related representations: close to the nominal 95 %
    assert (held[2, :2] >= 0.94).all()  # unrelated ones vary less than that: the error is on the safe side
    assert 0.8 < errors[:, 0, 1].mean() / values[:, 0, 1].std() < 1.1
    assert (errors.diagonal(dim1=1, dim2=2) == 0).all()
    assert torch.equal(errors, errors.mT)


def test_standard_errors_are_there_only_if_asked_for_and_where_cka_is():
    features = [*drawn(torch.Generator().manual_seed(0), 32), torch.ones(32, 2)]
    error = accumulated(features, 16).standard_error()
    assert torch.isnan(error[3]).all()
    assert torch.isfinite(error[:3, :3]).all()
    without = CkaAccumulator()
    without.add(torch.stack([centred_gram(values) for values in features]))
    with pytest.raises(ValueError, match="keeps errors"):
        without.standard_error()
