"""Whether the Hugging Face Hub can be reached. Imports its library only when needed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_LONGEST = 300  # characters of a library's message that are shown
_BEFORE = r"(?:bearer|basic)\s+|(?:token|password|authorization)['\"]?\s*[:=]\s*(?!['\"]?(?:bearer|basic))"
_SECRETS = (  # of an address: who asks, and what follows it; tokens
    (re.compile(r"(?<=://)[^\s/@]*@"), ""),
    (re.compile(r"(?<=\w)\?[^\s'\")>]*=[^\s'\")>]*"), ""),
    (re.compile(rf"(?i)({_BEFORE})\S{{6,}}"), r"\1..."),
    (re.compile(r"\b(hf|api|ghp|sk)_[A-Za-z0-9]{6,}"), "..."),
)
PATIENCE = 5.0  # seconds within which the Hub must connect, and answer


def hub_answers() -> bool:
    """Whether the Hub answers one request in any way; False if the user has switched it off.

    The library itself tries an unreachable Hub six times, with 23 seconds of pauses, before it gives up.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    except Exception:  # of its HTTP library, or of one below: of a proxy, a certificate, an address
        return False
    return True


def without_secrets(message: str) -> str:
    """The message of a library that asks a server, in one line, without tokens and passwords."""
    text = " ".join(message.split())
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@contextmanager
def offline_unless(answers: bool) -> Iterator[None]:
    """Context in which the Hub's library uses only files on disk, unless the Hub answers."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not answers
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
