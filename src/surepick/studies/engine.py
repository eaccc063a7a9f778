"""Where the tasks of a study run: on the cores of this machine, or on a Ray or Dask cluster, all through joblib."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Literal, TypeVar

from surepick.errors import InvalidInput, MissingExtra, SurepickError

Engine = Literal["local", "ray", "dask"]
Task = TypeVar("Task")
Result = TypeVar("Result")

ATTEMPTS = 3
"""How often workers may die before a sweep is given up; what was finished is kept."""


class SweepFailed(SurepickError):
    """Workers died again and again."""


def run_everywhere(
    work: Callable[[Task], Result],
    tasks: Sequence[Task],
    *,
    jobs: int,
    engine: Engine = "local",
    address: str | None = None,
) -> Iterator[tuple[int, Result]]:
    """Numbers of tasks and their results, in any order. A task that raises ends the sweep; one whose worker died, or
    was lost with its machine, is run again by another worker.
    """
    if engine == "local" and address is not None:
        raise InvalidInput(f"--address {address} is that of a cluster; say --engine ray or --engine dask, too.")
    from joblib import Parallel, delayed

    left = dict(enumerate(tasks))
    with _cluster(engine, jobs, address) as backend:
        for attempt in range(ATTEMPTS):
            calls = [delayed(_guarded)(work, number, task) for number, task in left.items()]
            try:
                for number, result, error in Parallel(n_jobs=jobs, return_as="generator_unordered", **backend)(calls):
                    if error is not None:
                        raise _TaskRaised(error)
                    del left[number]
                    yield number, result
            except _TaskRaised as raised:
                raised_by_task: Exception = raised.args[0]
                raise raised_by_task from None
            except Exception as error:  # whatever an engine says when a worker dies
                if attempt == ATTEMPTS - 1:
                    raise SweepFailed(
                        f"Workers of the engine {engine} died {ATTEMPTS} times ({type(error).__name__}: {error}); what "
                        "was finished is kept, and the same command goes on."
                    ) from error
            if not left:
                return


class _TaskRaised(Exception):
    """A task's own error, told from the death of a worker."""


def _guarded(work: Callable[[Task], Result], number: int, task: Task) -> tuple[int, Result | None, Exception | None]:
    try:
        return number, work(task), None
    except Exception as error:
        return number, None, error


@contextmanager
def _cluster(engine: Engine, jobs: int, address: str | None) -> Iterator[dict[str, Any]]:
    """What joblib needs to use the engine; without an address a cluster of processes is started here, and ended."""
    with ExitStack() as stack:
        if engine == "ray":
            _start_ray(stack, jobs, address)
        elif engine == "dask":
            _start_dask(stack, jobs, address)
        yield {} if engine == "local" else {"backend": engine}


def _start_ray(stack: ExitStack, jobs: int, address: str | None) -> None:
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError:
        raise MissingExtra("The engine ray needs Ray; install surepick[ray].") from None
    register_ray()
    if not ray.is_initialized():
        where: dict[str, Any] = {"num_cpus": _processes(jobs)} if address is None else {"address": address}
        try:
            ray.init(
                **where, include_dashboard=None if address else False, log_to_driver=False, configure_logging=False
            )
        except ConnectionError as error:
            raise InvalidInput(f"There is no Ray cluster at {address} ({error}).") from None
        stack.callback(ray.shutdown)


def _start_dask(stack: ExitStack, jobs: int, address: str | None) -> None:
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise MissingExtra("The engine dask needs Dask; install surepick[dask].") from None
    try:
        where = address or stack.enter_context(
            LocalCluster(n_workers=_processes(jobs), threads_per_worker=1, processes=True, dashboard_address=None)
        )
        stack.enter_context(Client(where, timeout="10s"))
    except (OSError, TimeoutError) as error:
        raise InvalidInput(f"There is no Dask scheduler at {address} ({error}).") from None


def _processes(jobs: int) -> int:
    """Processes of a cluster started here: -1 means all cores."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(jobs))
