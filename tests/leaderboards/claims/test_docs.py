"""The pages on claims are current."""

import re

from layerboard.leaderboards.claims.entries import CLAIMS
from tests.claims import BLOCK, DOCS, page_text, pages


def test_the_pages_are_as_the_entries_and_the_committed_pages_say() -> None:
    """`python -m tests.claims` writes them again."""
    assert [path.name for path in pages()] == ["claims.md", "inside.md", "mini.md"]
    stale = [path.name for path in pages() if page_text(path) != path.read_text(encoding="utf-8")]
    assert stale == []


def test_every_block_of_verdicts_has_some() -> None:
    for name in ("inside.md", "mini.md"):
        blocks = [found[0] for found in BLOCK.finditer((DOCS / name).read_text(encoding="utf-8"))]
        assert all(re.search(r"\*\*(holds|fails|undecided)\*\*", block) for block in blocks), name


def test_numbers_of_claims_are_those_of_their_places() -> None:
    numbers = [claim.number for claim in CLAIMS]
    assert numbers == [*range(1, len(CLAIMS) + 1)]
    assert len(numbers) >= 30
