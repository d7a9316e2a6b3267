"""Whether the Hugging Face Hub can be reached. Imports its library only when needed."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

_LONGEST = 300  # characters of a library's message that are shown
_BEFORE = r"(?:bearer|basic)\s+|(?:token|password|authorization)['\"]?\s*[:=]\s*(?!['\"]?(?:bearer|basic))"
_SECRETS = (  # of an address: who asks, and what follows it; tokens
    (re.compile(r"(?<=://)[^\s/@]*@"), ""),
    (re.compile(r"(?<=\w)\?[^\s'\")>]*=[^\s'\")>]*"), ""),
    (re.compile(rf"(?i)({_BEFORE})\S{{6,}}"), r"\1..."),
    (re.compile(r"\b(hf|api|ghp|sk)_[A-Za-z0-9]{6,}"), "..."),
)
PATIENCE = 5.0  # seconds within which the Hub must connect, and answer, when it is asked whether it is there
SILENCE = 30.0  # seconds within which it must answer, or send more, when it is asked for files


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
def hub_within_limits() -> Iterator[bool]:
    """Context in which the Hub's library uses only files on disk unless the Hub answers; True if it does.

    The library itself waits for ever for a server that accepts a request and then is silent. Here it raises
    TimeoutError after `SILENCE`, whatever it tries again.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

    offline, hooks = constants.HF_HUB_OFFLINE, get_session().event_hooks
    watched, answers = _Silence(), hub_answers()
    constants.HF_HUB_OFFLINE = offline or not answers
    hooks["request"].append(watched.ask)
    hooks["response"].append(watched.answer)
    try:
        yield answers
    finally:
        constants.HF_HUB_OFFLINE = offline
        hooks["request"].remove(watched.ask)
        hooks["response"].remove(watched.answer)


class _Silence:
    """Bounds the time in which a server answers nothing, however often the library asks again."""

    def __init__(self) -> None:
        self._since: float | None = None  # the first request that was not answered; None for none

    def ask(self, request: Any) -> None:  # noqa: ANN401  # of the HTTP library that the Hub's has chosen
        """Let a request wait no longer than what is left; raises TimeoutError if nothing is."""
        now = monotonic()
        self._since = now if self._since is None else self._since
        left = self._since + SILENCE - now
        if left <= 0:
            raise TimeoutError(f"{request.url.host} is silent for {SILENCE:g} seconds")
        limits = dict.fromkeys(("connect", "read", "write", "pool")) | request.extensions.get("timeout", {})
        request.extensions["timeout"] = {phase: min(limit or left, left) for phase, limit in limits.items()}

    def answer(self, response: object) -> None:
        """Begin to count anew."""
        del response
        self._since = None
