"""What a run is told: `Request` holds every option, each declared once.

The command line and ``benchmark.run`` are made from it.
"""

from benchmark.request.parsers import default_cache, default_workers
from benchmark.request.request import ELSEWHERE, Dtype, Request, StoreDtype

__all__ = ["ELSEWHERE", "Dtype", "Request", "StoreDtype", "default_cache", "default_workers"]
