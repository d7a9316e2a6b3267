"""Claims in docs/explanation: all entries in claims.md, the verdicts of mini suites in mini.md and inside.md.

``python -m tests.claims`` writes them again, from the entries and the committed pages.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill

from layerboard.leaderboards.blocks.display import task_display
from layerboard.leaderboards.claims.entries import CLAIMS, Claim
from layerboard.leaderboards.claims.section import CLAIMS_TITLE
from layerboard.leaderboards.writers.build import tables_folder

DOCS = Path(__file__).parents[1] / "docs" / "explanation"
BLOCK = re.compile(r"(<!-- claims: (.+?) -->\n).*?(<!-- end of claims -->)", re.DOTALL)
HEAD = "| claim | verdict | estimate | decided by |\n|---|---|---|---|"


def entry_text(claim: Claim) -> str:
    """An entry as part of a list."""
    needs = [each.words for each in claim.relations] + [f"`{task}`" for task in claim.tasks]
    text = (
        f"{claim.number}. **{claim.words}** {claim.source}. Number: {claim.statistic}. Null: {claim.null}. "
        f"Needs: {'; '.join(needs)}."
    )
    return fill(text, 105, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def is_inside(claim: Claim) -> bool:
    """Whether a claim rests on analyses."""
    return any(task_display(task).analysis for task in claim.tasks)


def verdicts(suite: str) -> Iterator[tuple[Claim, list[str]]]:
    """The claims that a committed page judges, each with the texts of its row."""
    page = (tables_folder() / f"{suite}.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {CLAIMS_TITLE}\n")[2].partition("\n### ")[0]
    entries = {str(claim.number): claim for claim in CLAIMS}
    for line in section.splitlines():
        number, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        if number in entries:
            yield entries[number], cells


def verdict_text(suite: str, *, inside: bool) -> str:
    """The verdicts of a suite on claims about scores, or about what is inside, as a table."""
    rows = [HEAD]
    for claim, (verdict, estimate, ends, subject, _) in verdicts(suite):
        if is_inside(claim) == inside:
            link = f"[{claim.number}](claims.md). {claim.words}"
            rows.append(f"| {link} | **{verdict}** | {estimate} ({ends}) | {subject} |")
    return "\n".join(rows)


def block_text(name: str) -> str:
    """The text of a block by its name: ``entries``, or a suite and what it is about."""
    if name == "entries":
        return "\n".join(map(entry_text, CLAIMS))
    suite, _, what = name.partition(", ")
    return verdict_text(suite, inside=what == "inside")


def page_text(path: Path) -> str:
    """A page with its blocks as they are now."""
    text = path.read_text(encoding="utf-8")
    return BLOCK.sub(lambda found: f"{found[1]}\n{block_text(found[2])}\n\n{found[3]}", text)


def pages() -> list[Path]:
    """The pages that have such blocks."""
    return [path for path in sorted(DOCS.glob("*.md")) if BLOCK.search(path.read_text(encoding="utf-8"))]


if __name__ == "__main__":
    for page in pages():
        page.write_text(page_text(page), encoding="utf-8")
