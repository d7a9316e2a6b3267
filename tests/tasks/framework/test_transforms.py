"""Transforms by name, and tasks whose vectors are transformed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.framework.base import Device, Outcome, Source
from layerboard.tasks.framework.task import VectorTask
from layerboard.tasks.framework.transformed import TransformConfig
from layerboard.tasks.framework.transforms import (
    BYTES,
    compressed_bytes,
    is_compression,
    misfit,
    parse_compression,
    parse_transform,
)
from layerboard.zoo.errors import InputError
from tests.benchmark.doubles import source


@pytest.mark.parametrize("text", ["whiten:3", "", "zscores"])
def test_other_names_are_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"--transform takes whiten and zscore; found"):
        parse_transform(text)


@dataclass(frozen=True, eq=False)
class Watching(VectorTask):
    """A task that keeps the vectors that it is given, and may be fitted on some."""

    data: tuple[Source, ...]
    config: tuple[Source, ...]
    seen: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    fingerprint: str = "watching"

    @property
    def vector_sources(self) -> tuple[Source, ...]:
        return self.data

    @property
    def fitted_on(self) -> tuple[Source, ...]:
        return self.config

    def score(self, vectors: Mapping[str, NDArray[np.float32]], device: Device = None) -> Outcome:
        self.seen.update(vectors)
        return Outcome((), empty="nothing is scored")


def two_sources() -> tuple[Source, Source]:
    from dataclasses import replace

    one = source([[1, 2]])
    return replace(one, name="bank"), replace(one, name="queries")


@pytest.mark.parametrize("name", ["zscore", "whiten"])
def test_only_the_sources_that_it_may_know_are_fitted(name: str) -> None:
    bank, queries = two_sources()
    random = np.random.default_rng(1)
    stored = (random.standard_normal((50, 3)) * [1, 4, 9] + 2).astype(np.float32)
    asked = random.standard_normal((7, 3)).astype(np.float32)
    stored[3], asked[2] = np.nan, np.nan
    found = []
    for shift in (0, 100):
        task = Watching((bank, queries), (bank,), transform=name)
        task.score(task.changed({"bank": stored, "queries": asked + np.float32(shift)}))
        found.append(task.seen)
    np.testing.assert_array_equal(found[0]["bank"], found[1]["bank"])
    assert np.abs(np.nanmean(found[0]["bank"], axis=0)).max() < 1e-5
    assert np.nanmean(found[1]["queries"]) > 5  # queries are moved by the bank's mean, not by their own
    assert np.isnan(found[0]["queries"][2]).all()
    assert np.isnan(found[0]["bank"][3]).all()


def test_fingerprints_tell_transforms_rules_and_tasks_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    bank, queries = two_sources()

    def mark(name: str = "whiten", task: str = "watching") -> str:
        transformed = Watching((bank, queries), (bank,), fingerprint=task, transform=parse_transform(name))
        return transformed.scored_fingerprint

    assert mark() == "d9e3d279a845489c482013fd9c7dda3b"
    marks = {mark(), mark("zscore"), mark(task="other"), Watching((bank, queries), (bank,)).fingerprint}
    monkeypatch.setattr("layerboard.tasks.framework.task.STANDARD", TransformConfig(0.2))
    assert len(marks | {mark()}) == 5


def test_what_a_transform_is_fitted_on_must_be_said() -> None:
    whiten = parse_transform("whiten")
    bank, queries = two_sources()
    assert "which images" in Watching((bank, queries), ()).transform_refusal(whiten)
    assert not Watching((bank, queries), (bank,)).transform_refusal(whiten)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("pca:128", 512), ("rp:8", 32), ("first:64", 256), ("int8", 300), ("binary", 38), ("pq:30", 30)),
        *(("pca:128+int8", 128), ("first:100+pca:12+binary", 2), ("whiten+pca:40+pq:10", 10)),
    ],
)
def test_compressions_have_a_name_and_a_size(text: str, size: int) -> None:
    assert parse_compression(text) == text
    assert is_compression(text)
    assert compressed_bytes(text, 300) == size


def test_numbers_of_compressions_are_written_in_one_way() -> None:
    assert parse_compression("pca:032+pq:08") == "pca:32+pq:8"
    assert not any(map(is_compression, ("", "whiten", "zscore")))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pca",
        "pca:0",
        "pca:-3",
        "int8:4",
        "int8+pca:3",
        "whiten",
        "zscore+whiten",
        "pca:3+",
        "pq:8+binary",
        "x",
    ],
)
def test_no_compression_is_one_sentence(text: str) -> None:
    with pytest.raises(InputError, match=r"^--compress takes pca:N, .* come last; found"):
        parse_compression(text)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pca:400", "pca:400 leaves 400 numbers of a vector, which has 300"),
        ("first:64+rp:65", "rp:65 leaves 65 numbers of a vector, which has 64"),
        ("pca:50", "pca:50 is fitted on more than 50 images; 50 could be read"),
        ("pq:7", "pq:7 cuts a vector into 7 equal parts, which its 300 numbers do not allow"),
        ("first:64+pq:8", "pq:8 is fitted on at least 256 images; 50 could be read"),
        ("pca:49+int8", ""),
        ("rp:300+binary", ""),
    ],
)
def test_what_cannot_be_fitted_is_a_phrase(name: str, reason: str) -> None:
    assert misfit(name, 50, 300) == reason


def test_a_chain_is_its_parts_and_says_its_bytes() -> None:
    bank, queries = two_sources()
    random = np.random.default_rng(3)
    vectors = {
        "bank": random.standard_normal((60, 12)).astype(np.float32),
        "queries": random.standard_normal((5, 12)).astype(np.float32),
    }
    vectors["bank"][7] = np.nan

    def task(name: str) -> Watching:
        return Watching((bank, queries), (bank,), transform=parse_compression(name))

    whole = task("pca:4+int8").changed(vectors)
    parts = task("int8").changed(task("pca:4").changed(vectors))
    np.testing.assert_array_equal(whole["bank"], parts["bank"])
    np.testing.assert_array_equal(whole["queries"], parts["queries"])
    assert whole["bank"].shape == (60, 4)
    assert np.isnan(whole["bank"][7]).all()
    assert BYTES == ("bytes", "bytes float32")
