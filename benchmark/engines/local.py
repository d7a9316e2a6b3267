"""Jobs one after the other in this process."""

from collections.abc import Callable, Sequence

from benchmark.engines.base import Result, Work
from benchmark.engines.progress import Reporter


class LocalEngine:
    """One job after the other in this process; the device is busy with one backbone at a time."""

    def map(
        self, function: Callable[[Work, Reporter], Result], jobs: Sequence[Work], report: Reporter
    ) -> list[Result]:
        """Results of the function on every job, in the jobs' order."""
        return [function(job, report) for job in jobs]
