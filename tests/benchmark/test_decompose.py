"""The steps between two protocols, from the command to the page: both ends are what plain runs say."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark.engines.progress import Silent
from benchmark.exchange.decomposing import Decomposed, decompose
from benchmark.plan.decomposed import steps_protocols, task_steps
from benchmark.request import Request
from leaderboards.choices.decomposition import difference_interval
from tasks.base import Items, Statistic
from tasks.protocols import find_protocol
from tests.benchmark.runs import command, run
from zoo.errors import InputError

LAYERS = "1,2"


def request(place: Path, data: Path) -> Request:
    return Request(
        ["mini-resnet"], data=data, output=place / "out", cache=place / "cache", workers=1, layers=LAYERS
    )


def scores(place: Path, data: Path, task: str, protocols: str, limit: int | None = None) -> pd.DataFrame:
    """Primary scores of plain runs."""
    found = run(place, ["mini-resnet"], task, data=data, protocol=protocols, layers=LAYERS, limit=limit)
    found = found[found["primary"].astype(bool) & (found["task"] == task)]
    return found.set_index(["protocol", "layer"])["value"]


@pytest.fixture(scope="module")
def keypoints(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Decomposed, Path]:
    place = tmp_path_factory.mktemp("keypoints")
    return decompose(request(place, data), "spair", ("standard", "paper"), Silent()), place


def test_both_ends_are_the_scores_of_plain_runs(
    keypoints: tuple[Decomposed, Path], data: Path, no_pages: None
) -> None:
    found, place = keypoints
    plain = scores(place, data, "spair", "standard,paper")
    fixed = [one for one in found.changes if one.chosen == "fixed"]
    best = [one for one in found.changes if one.chosen == "best"]
    layer = fixed[0].layers[0]
    assert fixed[0].before == plain["standard", layer] == plain["standard"].max()
    assert fixed[-1].after == plain["paper", layer]
    assert best[0].before == plain["standard"].max()
    assert best[-1].after == plain["paper"].max()
    for rows in (fixed, best):
        assert sum(one.delta for one in rows) == pytest.approx(rows[-1].after - rows[0].before)
        assert [one.after for one in rows[:-1]] == [one.before for one in rows[1:]]
        assert rows[0].alone == pytest.approx(rows[0].delta)  # the first choice comes first
        assert rows[-1].last == pytest.approx(rows[-1].delta)  # and the last one last
        assert all(one.low <= one.delta <= one.high for one in rows if np.isfinite(one.low))
    assert [one.forward for one in fixed] == [
        choice.name.startswith("resize") for choice in found.steps.choices
    ]


def test_the_way_back_adds_up_to_the_opposite(keypoints: tuple[Decomposed, Path], data: Path) -> None:
    found, place = keypoints
    back = decompose(request(place, data), "spair", ("paper", "standard"), Silent())
    totals = [sum(one.delta for one in each.changes if one.chosen == "best") for each in (found, back)]
    assert totals[0] == pytest.approx(-totals[1])


def test_its_page_says_choices_and_what_a_protocol_is_not(keypoints: tuple[Decomposed, Path]) -> None:
    found, place = keypoints
    (page,) = (path for path in found.files if path.suffix == ".md")
    text = page.read_text()
    assert page.parent == place / "out/tables"
    assert "resize and padding" in text
    assert "centred on black, Lanczos" in text
    assert "the order here is alphabetical" in text
    rows = pd.read_csv(page.with_suffix(".csv"))
    assert len(rows) == 2 * len(found.steps.choices)
    assert rows["delta"].to_numpy() == pytest.approx([one.delta for one in found.changes])


def test_propagation_is_decomposed_too(data: Path, tmp_path: Path, no_pages: None) -> None:
    small = replace(request(tmp_path, data), limit=1)
    found = decompose(small, "davis", ("standard", "dino"), Silent())
    plain = scores(tmp_path, data, "davis", "standard,dino", limit=1)
    best = [one for one in found.changes if one.chosen == "best"]
    assert best[0].before == pytest.approx(plain["standard"].max(), abs=1e-9)
    assert best[-1].after == pytest.approx(plain["dino"].max(), abs=1e-9)


def test_one_task_a_view() -> None:
    first, second = (find_protocol(name) for name in ("standard", "insid3"))
    steps = task_steps("spair", first, second)
    protocols = steps_protocols(steps, first, second)
    assert len(protocols) == 4  # two sizes, two ways to resize
    numbers = sorted(number for one in protocols for number, _ in one.rules)
    assert numbers == list(range(len(steps.rules)))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("spair", "--to", "standard"), "standard and standard do the same in spair"),
        (("spair", "--to", "dinov3"), "the protocol dinov3 is of davis, not of spair"),
        (("knn", "--to", "paper"), "protocols of spair and davis can be decomposed, not of knn"),
        (("spair", "--from", "standart"), "did you mean 'standard'"),
    ],
)
def test_what_cannot_be_decomposed(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = command(capsys, "decompose", *words)
    assert found.code == 2
    assert said in found.err


def hits(values: list[float], over: str = "items") -> tuple[Items, str]:
    """Items of one value each, in clusters of their own."""
    keys = tuple(f"item{place}" for place in range(len(values)))
    column = np.array(values)
    statistic = Statistic("hit", over)  # type: ignore[arg-type]
    return Items("items", keys, keys, ("",) * len(keys), {"hit": column}, {"hit": statistic}), "hit"


def test_pairs_of_equal_values_leave_no_doubt_and_other_items_leave_more() -> None:
    rng = np.random.default_rng(0)
    values = [float(value) for value in rng.uniform(0, 100, 40)]
    raised = [value + 3 for value in values]
    low, high = difference_interval(hits(values), hits(raised))
    assert (low, high) == (pytest.approx(3), pytest.approx(3))
    nan = float("nan")
    apart = hits([*values, *[nan] * 40]), hits([*[nan] * 40, *raised])
    low, high = difference_interval(*apart)
    spread = 2 * np.std(values, ddof=1) ** 2 / 40
    assert (high - low) / 2 == pytest.approx(2.0227 * np.sqrt(spread), rel=1e-3)  # Student's t of 39


def test_too_few_units_have_no_interval() -> None:
    assert all(np.isnan(difference_interval(hits([1.0]), hits([2.0]))))


def test_an_unknown_backbone_is_one_sentence(data: Path, tmp_path: Path) -> None:
    wrong = Request(["nobody"], data=data, output=tmp_path / "out", cache=tmp_path / "cache")
    with pytest.raises(InputError, match="nobody"):
        decompose(wrong, "spair", ("standard", "paper"), Silent())
