import pytest

from layerboard.tasks.framework.registry import TASKS, find_tasks
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
