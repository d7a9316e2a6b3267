import math
from dataclasses import replace

import pytest

from layerboard.tasks.framework.registry import TASKS, find_tasks, load_code
from layerboard.zoo.errors import InputError


def test_no_name_gives_every_task_but_those_that_must_be_asked_for() -> None:
    assert find_tasks(()) == tuple(task for task in TASKS if task.default)
    unasked = [task for task in TASKS if task.analysis or task.name in ("fewshot", "linear")]
    assert [task.name for task in unasked if task.default] == ["cost"]


def test_tasks_come_in_registry_order_and_once() -> None:
    found = find_tasks(("cka", "davis", "knn", "davis"))
    assert [task.name for task in found] == ["knn", "davis", "cka"]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("kn", "knn"), ("retreival", "retrieval"), ("davis17", "davis")]
)
def test_a_misspelt_task_is_guessed(wrong: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"no task '{wrong}'; did you mean '{meant}'"):
        find_tasks(("cka", wrong))


def test_a_strange_task_is_answered_with_the_list() -> None:
    with pytest.raises(InputError, match=r"no task 'zzz'; there are knn, .*, cka"):
        find_tasks(("zzz",))


@pytest.mark.parametrize(
    ("task", "changes"),
    [
        *(("knn", {"k": k}) for k in (0, -3)),
        ("knn", {"others": (5, 0)}),
        *(("knn", {"temperature": temperature}) for temperature in (0.0, -0.1, math.nan)),
        *(("cluster-image", {"n_init": starts}) for starts in (0, -1)),
    ],
)
def test_settings_of_own_tasks_that_mean_nothing_are_refused(task: str, changes: dict[str, object]) -> None:
    (entry,) = find_tasks([task])
    config = load_code(entry, "standard").configs["standard"]
    with pytest.raises(InputError, match="at least 1"):
        replace(config, **changes)
