"""Jobs one after the other in this process."""

from benchmark.engines.base import Desk, Engine, Function, Job, Result
from benchmark.engines.dispatch import Worker, dispatch
from benchmark.engines.progress import Reporter


class LocalEngine(Engine):
    """One job after the other in this process; the device is busy with one backbone at a time."""

    def carry_out(self, function: Function[Job, Result], desk: Desk[Job, Result], report: Reporter) -> None:
        """Do all that is on the desk."""
        dispatch([_Here(function, report)], desk)


class _Here(Worker[Job, Result]):
    """This process as a worker."""

    def __init__(self, function: Function[Job, Result], report: Reporter) -> None:
        self._function, self._report = function, report

    def do(self, job: Job) -> Result:
        """The function of the job."""
        return self._function(job, self._report)

    def end(self) -> None:
        """Nothing is left when a job has returned or raised."""
