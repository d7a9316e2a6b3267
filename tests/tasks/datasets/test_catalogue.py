import pytest

from layerboard.benchmark.plan.suites import SUITES, Suite
from layerboard.tasks.framework.registry import NO_DATA, TASKS


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_datasets_of_a_role_have_different_names_in_a_suite(suite: Suite) -> None:
    places = [(role, entry.name) for entry in suite.datasets for role in entry.roles]
    assert len(set(places)) == len(places)


def test_each_role_of_a_task_has_a_dataset() -> None:
    roles = {role for suite in SUITES for entry in suite.datasets for role in entry.roles}
    assert {task.role for task in TASKS} == roles | {NO_DATA}
