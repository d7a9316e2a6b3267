"""Whether the Hugging Face Hub can be reached. Imports its library only when needed."""

from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE = 5.0  # seconds within which the Hub must connect, and answer


def hub_answers() -> bool:
    """Whether the Hub answers one request in any way; False if the user has switched it off.

    The library itself tries an unreachable Hub six times, with 23 seconds of pauses, before it gives up.
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
    """Context in which the Hub's library uses only files on disk, unless the Hub answers."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or not answers
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
