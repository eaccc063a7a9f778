"""Speed side by side with what a user would pick instead: every bench by name, each a function that returns rows.

Reading order: `runner` (how times are taken and reported), then any bench.
"""

from surepick_experiments.benches.contextual import bench_contextual
from surepick_experiments.benches.design import bench_design
from surepick_experiments.benches.fit import bench_fit
from surepick_experiments.benches.rank import bench_rank
from surepick_experiments.benches.runner import Bench, Progress, Row

BENCHES: dict[str, Bench] = {
    "contextual": bench_contextual,
    "design": bench_design,
    "fit": bench_fit,
    "rank": bench_rank,
}

__all__ = ["BENCHES", "Bench", "Progress", "Row", "bench_contextual", "bench_design", "bench_fit", "bench_rank"]
