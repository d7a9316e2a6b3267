import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.metrics.similarity import CkaAccumulator, centred_gram, cka, gather, normalise
from tests.tasks.metrics import golden

CASES = golden.cases("cka")


def batched(sets, batch, **options):
    """Minibatch CKA of several feature sets of the same samples."""
    accumulator = CkaAccumulator()
    for start in range(0, len(sets[0]), batch):
        grams = [centred_gram(values[start : start + batch], **options) for values in sets]
        accumulator.add(torch.stack(grams))
    return accumulator.matrix()


def obvious_hsic(one, two):
    """Unbiased HSIC of two Gram matrices by the formula of Song et al."""
    n = len(one)
    one, two = (gram - np.diag(np.diag(gram)) for gram in (one, two))
    product = one @ two
    sums = one.sum() * two.sum() / ((n - 1) * (n - 2)) - 2 * product.sum() / (n - 2)
    return (np.trace(product) + sums) / (n * (n - 3))


@pytest.mark.parametrize("batch", [64, 8])
@pytest.mark.parametrize("min_max", [False, True])
def test_agrees_over_batches(batch, min_max):
    case = CASES["sets_256_in_order"]
    data, expected = golden.build(case), case["expected"]["batch"][str(batch)]
    sets = [torch.from_numpy(data[name]) for name in case["expected"]["feature_sets"]]
    exact = batched([values.double() for values in sets], batch, min_max=min_max)
    own = expected["own_float64_min_max" if min_max else "own_float64_plain"]
    np.testing.assert_allclose(exact.value, own, rtol=0, atol=1e-9)
    assert exact.defined.all()
    single = batched(sets, batch, min_max=min_max).value
    np.testing.assert_allclose(single, own, rtol=0, atol=2e-5)
    if min_max:
        np.testing.assert_allclose(exact.value, expected["official_min_max"], rtol=0, atol=2e-5)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_agrees_on_the_full_set(estimator):
    case = CASES["sets_256_in_order"]
    data, expected = golden.build(case), case["expected"][f"own_float64_full_{estimator}"]
    sets = [torch.from_numpy(data[name]).double() for name in case["expected"]["feature_sets"]]
    found = [[cka(x, y, estimator) for y in sets] for x in sets]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", ["full_unbiased", "full_biased", "batch_64_plain", "batch_64_min_max"])
def test_agrees_on_invariances(kind):
    case = CASES["sets_256_in_order"]
    data, facts = golden.build(case), case["expected"]["own_float64_facts"][kind]
    a, b, c = (torch.from_numpy(data[name]).double() for name in ("A", "B", "C"))
    pure = torch.from_numpy(data["B_pure"]).double()
    stretched = a * (1 + torch.arange(a.shape[1]) / 8)
    others = {
        "A vs A": (a, a),
        "A vs 3 * A": (a, 3 * a),
        "A vs A + 5 in every entry": (a, a + 5),
        "A vs A with column j times (1 + j / 8)": (a, stretched),
        "A vs B_pure (A padded, rotated, times 2; float32)": (a, pure),
        "A vs B": (a, b),
        "B vs A": (b, a),
        "A vs C": (a, c),
        "A vs C, samples of both in reverse order": (a.flip(0), c.flip(0)),
        "A vs C, samples of C in reverse order": (a, c.flip(0)),
    }
    for name, (x, y) in others.items():
        if kind.startswith("full"):
            found = cka(x, y, kind.removeprefix("full_"))
        else:
            found = float(batched([x, y], 64, min_max=kind.endswith("min_max")).value[0, 1])
        assert found == pytest.approx(facts[name], abs=1e-9), name


@pytest.mark.parametrize("mode", ["cls", "spat", "all"])
def test_agrees_on_tokens(mode):
    case = CASES["tokens"]
    data, expected = golden.build(case), case["expected"][mode]
    part = {"cls": slice(0, 1), "spat": slice(1, None), "all": slice(None)}[mode]
    x, y = (torch.from_numpy(data[name])[:, part].flatten(1).double() for name in ("X", "Y"))
    assert float(batched([x, y], 32).value[0, 1]) == pytest.approx(expected["own_float64_plain"], abs=1e-9)
    scaled = float(batched([x, y], 32, min_max=True).value[0, 1])
    assert scaled == pytest.approx(expected["own_float64_min_max"], abs=1e-9)
    assert scaled == pytest.approx(expected["official_min_max"], abs=2e-5)
    for estimator in ("unbiased", "biased"):
        assert cka(x, y, estimator) == pytest.approx(expected[f"own_float64_full_{estimator}"], abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 12), st.integers(1, 6), st.integers(1, 6))
def test_gather_equals_the_formula_for_every_pair(seed, n, dim_x, dim_y):
    generator = torch.Generator().manual_seed(seed)
    x, y = (torch.randn(n, dim, dtype=torch.float64, generator=generator) for dim in (dim_x, dim_y))
    found = gather(torch.stack([centred_gram(x), centred_gram(y)]), centred_gram(y)[None])
    grams = [(values @ values.T).numpy() for values in (x, y)]
    expected = [[obvious_hsic(grams[0], grams[1])], [obvious_hsic(grams[1], grams[1])]]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_unrelated_wide_features_are_near_zero_unbiased_and_near_one_biased():
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(16, 2000, generator=generator) for _ in range(2))
    assert abs(cka(x, y)) < 0.2
    assert cka(x, y, "biased") > 0.8


def test_a_large_common_offset_does_not_matter():
    x = torch.randn(32, 20, generator=torch.Generator().manual_seed(1))
    y = x @ torch.randn(20, 9, generator=torch.Generator().manual_seed(2))
    assert cka(x + 100, y) == pytest.approx(cka(x, y), abs=1e-4)


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
    assert found.defined.tolist() == [[False, False], [False, True]]
    assert found.value.isnan().tolist() == [[True, True], [True, False]]
    assert np.isnan(cka(still, moving))


def test_refuses_wrong_input():
    x, gram = torch.randn(5, 3), torch.zeros(2, 5, 5)
    accumulator = CkaAccumulator()
    with pytest.raises(ValueError, match="at least one batch"):
        accumulator.matrix()
    accumulator.add(gram)
    for call, word in [
        (lambda: centred_gram(x[:3]), "at least 4 samples"),
        (lambda: centred_gram(x[0]), "expected features"),
        (lambda: centred_gram(x * torch.nan), "NaN"),
        (lambda: gather(gram, gram[0]), "expected Gram matrices"),
        (lambda: gather(gram[:, :3, :3], gram[:, :3, :3]), "at least 4"),
        (lambda: accumulator.add(gram[:1]), "2 layers as before"),
        (lambda: cka(x, x[:4]), "n dim"),
        (lambda: cka(x, x, "plain"), "estimator"),
        (lambda: normalise(gram), "layers layers"),
    ]:
        with pytest.raises(ValueError, match=word):
            call()
