import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerboard.tasks.datasets.base import FileSample
from layerboard.tasks.datasets.classes import divide, split_names
from layerboard.zoo.errors import InputError


@given(st.sets(st.text(min_size=1, max_size=8), min_size=2, max_size=40))
def test_split_is_a_partition_with_a_fifth_of_queries(names: set[str]) -> None:
    bank, queries = split_names(sorted(names))
    assert sorted(bank + queries) == sorted(names)
    assert bank
    assert len(queries) == max(1, round(len(names) / 5))
    assert split_names(sorted(names, reverse=True)) == (bank, queries)


def test_split_is_the_same_for_ever() -> None:
    assert split_names([f"{index}.jpg" for index in range(10)])[1] == ["1.jpg", "7.jpg"]


@given(st.integers(2, 60))
def test_one_name_more_moves_one_other_at_most(count: int) -> None:
    names = [f"{index}.jpg" for index in range(count + 1)]
    before, after = split_names(names[:-1])[1], split_names(names)[1]
    assert len({*before} ^ {*after}) <= 2


def test_a_class_of_one_image_cannot_be_split() -> None:
    with pytest.raises(
        InputError, match=r"at least 2 images in every class of here, .* found 1 in b; add images"
    ):
        divide([(label, FileSample("", "")) for label in "aab"], ["1", "2", "1"], "here")
