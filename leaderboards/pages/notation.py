"""The small notation of our own sentences: ``**strong**``, `code`, ``[text](target)`` and ``{data}``.

Only sentences that stand in the source code are read so. Data are filled in afterwards and never read as
notation, whatever they contain.
"""

import re

from tasks.blocks import Break, Code, Link, Piece, Strong, Text

_MARKED = re.compile(
    r"\*\*(?P<strong>.+?)\*\*|`(?P<code>.+?)`|\[(?P<text>[^\]]+)\]\((?P<target>[^)]+)\)|(?P<line>\n)",
    re.DOTALL,
)


def said(notation: str, **data: str) -> Text:
    """A paragraph of one of our own sentences.

    Args:
        notation: The sentence; a line break ends a line of plain text.
        data: What its placeholders stand for, taken as it is; white space in it becomes single spaces.

    Raises:
        KeyError: A placeholder has no data.
    """
    filled = {name: " ".join(value.split()) for name, value in data.items()}
    pieces: list[Piece] = []
    end = 0
    for found in _MARKED.finditer(notation):
        pieces += [notation[end : found.start()].format(**filled), _marked(found, filled)]
        end = found.end()
    pieces.append(notation[end:].format(**filled))
    return Text(tuple(piece for piece in pieces if piece != ""))


def _marked(found: re.Match[str], data: dict[str, str]) -> Piece:
    """The piece of one mark."""
    if found["line"]:
        return Break()
    if found["strong"]:
        return Strong(found["strong"].format(**data))
    if found["code"]:
        return Code(found["code"].format(**data))
    return Link(found["text"].format(**data), found["target"].format(**data))
