"""Keeps the Hugging Face libraries from writing to the terminal."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from transformers.utils import logging as log

from zoo.load.quiet_hub import quiet_hub


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, load reports, retries and advice inside; exceptions still come out."""
    verbosity, loading = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity(logging.CRITICAL)
    log.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        with quiet_hub():
            yield
    finally:
        log.set_verbosity(verbosity)
        if loading:
            log.enable_progress_bar()  # type: ignore[no-untyped-call]
