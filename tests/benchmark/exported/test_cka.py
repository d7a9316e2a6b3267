import numpy as np
import pytest

from tests.tasks.agreement import golden

CASES = golden.cases("cka")


@pytest.fixture
def files(tmp_path):
    """Writes arrays into .npy files."""

    def write(arrays):
        for name, values in arrays.items():
            np.save(tmp_path / f"{name}.npy", values)
        return [tmp_path / f"{name}.npy" for name in arrays]

    return write


def matrix(found):
    return [list(row.values()) for row in found["scores"].values()]


def test_agrees_over_batches(scores, files):
    case, batch = CASES["sets_256_in_order"], "8"
    data, expected = golden.build(case), case["expected"]["batch"][batch]
    paths = files({name: data[name] for name in case["expected"]["feature_sets"]})
    found = scores("cka", "--features", *paths, "--config", f"batch_size={batch}")
    np.testing.assert_allclose(matrix(found), expected["own_float64_plain"], rtol=0, atol=1e-9)
    assert list(found["scores"]) == ["A", "B", "C"]
    assert (found["n"], found["scale"]) == (256, "fraction")
    assert found["details"] == {"batches": 32, "samples_left_out": 0}
    found = scores("cka", "--features", *paths, "--config", "estimator=paper")
    assert found["protocol"] == "paper"
    assert found["parameters"]["batch_size"] == int(batch)
    np.testing.assert_allclose(matrix(found), expected["own_float64_min_max"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(matrix(found), expected["official_min_max"], rtol=0, atol=2e-5)


def test_agrees_on_tokens_of_more_axes(scores, files):
    case = CASES["tokens"]
    data, expected = golden.build(case), case["expected"]["spat"]
    paths = files({name: data[name][:, 1:] for name in ("X", "Y")})
    for key, *options in [
        ("own_float64_min_max", "--config", "batch_size=32", "estimator=paper"),
        ("own_float64_full_unbiased",),
    ]:
        found = scores("cka", "--features", *paths, *options)["scores"]
        assert found["X"]["Y"] == found["Y"]["X"] == pytest.approx(expected[key], abs=1e-9)


def biased_hsic(x, y):
    """By the definition, with the centring matrix."""
    n = len(x)
    centring = np.eye(n) - 1 / n
    return np.trace(x @ x.T @ centring @ y @ y.T @ centring) / (n - 1) ** 2


def test_biased_hsic_is_summed_over_batches_of_any_size(scores, files):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((19, 3)), rng.standard_normal((19, 5))
    y[:, :3] += x
    sums = [
        sum(biased_hsic(a[i : i + 7], b[i : i + 7]) for i in (0, 7, 14)) for a, b in ((x, y), (x, x), (y, y))
    ]
    paths = files({"x": x, "y": y})
    found = scores("cka", "--features", *paths, "--config", "estimator=biased", "batch_size=7")
    assert found["scores"]["x"]["y"] == pytest.approx(sums[0] / np.sqrt(sums[1] * sums[2]), abs=1e-12)


def test_a_short_remainder_is_left_out_and_said(scores, files):
    rng = np.random.default_rng(1)
    arrays = {name: rng.standard_normal((19, 4)) for name in "xy"}
    found = scores("cka", "--features", *files(arrays), "--config", "batch_size=8")
    assert found["notes"] == ["the last 3 rows are fewer than 4 and were left out"]
    assert (found["n"], found["details"]) == (16, {"batches": 2, "samples_left_out": 3})
    whole = scores(
        "cka", "--features", *files({n: a[:16] for n, a in arrays.items()}), "--config", "batch_size=8"
    )
    assert matrix(found) == matrix(whole)


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "paper"])
def test_what_does_not_vary_within_batches_is_null(scores, files, estimator):
    x = np.random.default_rng(2).standard_normal((8, 3))
    steps = np.repeat([[1.0, 2.0], [0.3, 5.0]], 4, axis=0)
    options = ("--config", f"estimator={estimator}", "batch_size=4")
    found = scores("cka", "--features", *files({"x": x, "steps": steps}), *options)
    assert matrix(found) == [[pytest.approx(1), None], [None, None]]
    assert found["reason"] == "within batches steps do not vary"


def test_equal_names_are_told_apart(scores, files, tmp_path):
    rng = np.random.default_rng(3)
    (tmp_path / "other").mkdir()
    (path,) = files({"x": rng.standard_normal((9, 3))})
    np.save(tmp_path / "other" / "x.npy", rng.standard_normal((9, 2)))
    found = scores("cka", "--features", path, "--features", tmp_path / "other" / "x.npy")
    assert list(found["scores"]) == [str(path), str(tmp_path / "other" / "x.npy")]


def test_a_wide_table_keeps_its_digits(says, files):
    rng = np.random.default_rng(5)
    said = says(
        "cka", "--features", *files({f"layer-{i:02d}": rng.standard_normal((9, 3)) for i in range(20)})
    )
    lines = said.out.splitlines()
    assert lines[0].split() == ["CKA", *(f"layer-{i:02d}" for i in range(20))]
    for number, line in enumerate(lines[2:22]):
        name, *cells = line.split()
        assert name == f"layer-{number:02d}"
        assert cells[number] == "1.0000"
        assert all(-2 < float(cell) < 2 for cell in cells)
    odd = says("cka", "--features", *files({"[red]a": rng.random((9, 3)), "[b]": rng.random((9, 3))}))
    assert odd.out.splitlines()[0].split() == ["CKA", "[red]a", "[b]"]
    assert lines[23] == "9 samples, protocol: standard."


def test_wrong_arrays(says, files, tmp_path):
    x = np.random.default_rng(4).standard_normal((9, 3))
    nan = x.copy()
    nan[5, 0] = np.nan
    for arrays, words in [
        ({"x": x}, "at least two arrays as --features, found 1"),
        ({"x": x, "y": x[:8]}, "found 9 rows in {x} and 8 in {y}"),
        ({"x": x[:3], "y": x[:3]}, "at least 4 samples, found 3 rows"),
        ({"x": x, "y": x[:, 0]}, "at least two axes in {y}, found [9]"),
        ({"x": x[0, 0], "y": x}, "at least two axes in {x}, found []"),
        ({"x": x, "y": x[:, :0]}, "found [9 0]"),
        ({"x": x, "y": nan}, "first in row 5"),
        ({"x": x, "y": np.ones((9, 2))}, "that vary over the samples in {y}"),
        ({"x": x, "y": x.astype(str)}, "found the type <U32"),
    ]:
        paths = files(arrays)
        for path in paths:
            words = words.replace(f"{{{path.stem}}}", str(path))
        assert words in says("cka", "--features", *paths).error
    assert "every array once as --features" in says("cka", "--features", paths[0], paths[0]).error
    assert "No such file" in says("cka", "--features", paths[0], tmp_path / "none.npy").error
    assert says("cka", "--features", *paths, "--config", "batch_size=3").code == 2
