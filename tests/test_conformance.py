"""Every scorer agrees with its reference, and the committed page says so."""

from dataclasses import replace
from typing import Any

import pytest

from tests import conformance
from tests.conformance import AGREEMENTS, PAGE, Findings, render
from tests.tasks.agreement import golden

Measured = list[Findings]
CASES = [(each.title, name) for each in AGREEMENTS for name in each.recipes]


@pytest.mark.parametrize(("title", "name"), CASES)
def test_agrees_with_the_reference(title: str, name: str) -> None:
    assert [finding for finding in conformance.compared(title, name) if not finding.holds] == []


@pytest.fixture(scope="module")
def measured() -> Measured:
    return conformance.measure()


def changed(measured: Measured, **facts: Any) -> Measured:
    """The findings with other facts of one: the last frame's soft labels, with a tolerance of 2e-5."""
    *others, last = measured[4]["radius_12"]
    scorer = measured[4] | {"radius_12": [*others, replace(last, **facts)]}
    return [*measured[:4], scorer, *measured[5:]]


def test_the_committed_page_is_current(measured: Measured) -> None:
    assert PAGE.read_text(encoding="utf-8") == render(measured), "python -m tests.conformance writes it again"


def test_rounding_does_not_change_the_page(measured: Measured) -> None:
    page = render(measured)
    assert "| `radius_12` | soft labels of the last frame | official | 2e-05 |" in page
    assert page == render(changed(measured, difference=0.0)) == render(changed(measured, difference=1.5e-5))


def test_every_case_is_compared_or_needs_what_is_not_here() -> None:
    for agreement in AGREEMENTS:
        for name, case in golden.cases(agreement.file).items():
            assert name in agreement.recipes or case["builder"].startswith("stored_")
        assert set(agreement.recipes) <= set(golden.cases(agreement.file))


def test_a_difference_beyond_the_tolerance_never_reaches_the_page(measured: Measured) -> None:
    with pytest.raises(SystemExit, match="soft labels of the last frame"):
        render(changed(measured, difference=float("nan")))
