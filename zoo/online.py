"""Whether the Hugging Face Hub answers. Imports its library only when asked."""

from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 5.0  # seconds in which the Hub must connect, and answer


def hub_answers() -> bool:
    """Whether the Hub answers one request, with whatever; False where the user has switched it off.

    The library itself asks an unreachable Hub six times, with 23 seconds of pauses, before it gives up.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HTTPError  # type: ignore[attr-defined]  # of its HTTP library
    from huggingface_hub.utils import get_session  # type: ignore[attr-defined]

    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)
    except (OSError, HTTPError, ValueError, RuntimeError):
        return False
    return True


@contextmanager
def offline_unless(answers: bool) -> Iterator[None]:
    """Inside, the Hub's library looks at what it has on disk only, unless the Hub answers."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not answers
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
