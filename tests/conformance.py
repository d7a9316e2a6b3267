"""What each scorer was compared with, and how close it came: ``python -m tests.conformance`` writes the page.

The page says tolerances, and no difference that was measured: rounding depends on the machine, and never
changes the page.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from tests.tasks.agreement import (
    anomaly,
    attention,
    clustering,
    correspondence,
    few_shot,
    golden,
    in_context,
    neighbours,
    papers,
    propagation,
    ranking,
    segmentation,
    similarity,
    tracking,
)
from tests.tasks.agreement.base import Agreement, Finding

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "conformance.md"
AGREEMENTS: tuple[Agreement, ...] = (
    neighbours.AGREEMENT,
    few_shot.AGREEMENT,
    ranking.AGREEMENT,
    segmentation.AGREEMENT,
    propagation.AGREEMENT,
    tracking.AGREEMENT,
    correspondence.AGREEMENT,
    papers.AGREEMENT,
    clustering.AGREEMENT,
    similarity.AGREEMENT,
    attention.AGREEMENT,
    in_context.AGREEMENT,
    anomaly.AGREEMENT,
)
Findings = dict[str, list[Finding]]

SOURCE = re.compile(r"[\w-]+/[\w.-]+@[0-9a-f]{40}|scikit-learn [\d.]+\d")

HEAD = """# Conformance of the scorers

<!-- Written by `python -m tests.conformance`; a test keeps it current. -->

What each scorer was compared with, on which inputs, and how close it came. Inputs are drawn from a seed and
rebuilt bit for bit. What the reference gives on them is stored in
[tests/reference](../../tests/reference/README.md); none of it comes from this package's code. The tests run
the same comparisons.

- **official**: the reference implementation's own code gave the number. It is named with its commit.
- **own float64**: an independent computation in float64, not official: there is no official number, or the
  official one depends on the order of ties.
- **itself**: the scorer's own input or second answer.

The test holds while a difference is at most the *tolerance*, which is absolute unless it says relative.
*Exact* means equal counts, names or bits.

The comparisons start from features, masks or similarities. They say nothing about backbones, image decoding
and resizing, or the readers of datasets, which have tests of their own, and nothing about published scores of
real backbones.
"""


@cache
def compared(title: str, name: str) -> list[Finding]:
    """Findings of one case of a scorer."""
    return next(each for each in AGREEMENTS if each.title == title).compare(name)


def measure() -> list[Findings]:
    """Findings of each scorer by case."""
    return [{name: compared(each.title, name) for name in each.recipes} for each in AGREEMENTS]


def render(measured: Sequence[Findings]) -> str:
    """The page."""
    sections = [_section(*pair) for pair in zip(AGREEMENTS, measured, strict=True)]
    return "\n".join([HEAD, *sections])


def _section(agreement: Agreement, findings: Findings) -> str:
    cases = golden.cases(agreement.file)
    stored = (name for name, case in cases.items() if case.get("builder", "").startswith("stored_"))
    skipped = ", ".join(f"`{name}`" for name in stored if name not in agreement.recipes)
    lines = [
        f"## {agreement.title}",
        "",
        f"Code: `{agreement.module}`. Numbers: `tests/reference/{agreement.file}.json`.",
        f"Reference: {', '.join(agreement.sources or _sources(cases.values()))}.",
        *([f"Skipped by the tests, as it needs real masks: {skipped}."] if skipped else []),
        "",
        "| case | what it is | size |",
        "|---|---|---|",
        *(f"| `{name}` | {words} | {_size(cases[name])} |" for name, words in agreement.recipes.items()),
        "",
        "| case | what is compared | with | tolerance |",
        "|---|---|---|---|",
        *(f"| `{name}` {_row(finding)}" for name, rows in findings.items() for finding in rows),
        "",
        *(f"- {note}" for note in agreement.notes),
        "",
    ]
    return "\n".join(lines)


def _row(finding: Finding) -> str:
    if not finding.holds:
        raise SystemExit(f"{finding.what}: {finding.difference} is more than {finding.tolerance}")
    tolerance = f"{finding.tolerance:g}" if finding.tolerance else "exact"
    return f"| {finding.what} | {finding.against} | {tolerance} |"


def _sources(cases: Any) -> Iterator[str]:
    """Reference implementations with their commits, each once, in order of appearance."""
    found = chain.from_iterable(SOURCE.findall(case["produced_by"]) for case in cases)
    for source in dict.fromkeys(found):
        name, _, commit = source.partition("@")
        yield f"{name} at `{commit[:12]}`" if commit else name


def _size(case: dict[str, Any]) -> str:
    inputs = case.get("inputs", {}).items()
    return ", ".join(f"{name} {' x '.join(map(str, facts['shape']))}" for name, facts in inputs) or "as named"


if __name__ == "__main__":
    PAGE.write_text(render(measure()), encoding="utf-8")
