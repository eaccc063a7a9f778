"""Where the tasks of a study run: on the cores of this machine, or on a Ray or Dask cluster, all through joblib."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, Literal, TypeVar

from surepick.errors import InvalidInput, MissingExtra, SurepickError

Engine = Literal["local", "ray", "dask"]
Task = TypeVar("Task")
Result = TypeVar("Result")

PORTION = 4
"""Tasks a process, in one portion, where an engine cannot hand over results one by one."""

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
    from joblib import delayed, effective_n_jobs

    left = dict(enumerate(tasks))
    with _cluster(engine, jobs, address):
        # Ray's backend returns whole lists only, so it gets the tasks in portions, and no more than one is ever lost.
        portion = PORTION * int(effective_n_jobs(jobs)) if engine == "ray" else len(left)
        deaths = 0
        while left:
            calls = [delayed(_guarded)(work, number, left[number]) for number in list(left)[:portion]]
            try:
                for number, result, error in _results(calls, jobs, engine):
                    if error is not None:
                        raise _TaskRaised(error)
                    del left[number]
                    yield number, result
            except _TaskRaised as raised:
                raised_by_task: Exception = raised.args[0]
                raise raised_by_task from None
            except Exception as error:  # whatever an engine says when a worker dies
                deaths += 1
                if deaths == ATTEMPTS:
                    raise SweepFailed(
                        f"Workers of the engine {engine} died {ATTEMPTS} times ({type(error).__name__}: {error}); what "
                        "was finished is kept, and the same command goes on."
                    ) from error


def _results(calls: list[Any], jobs: int, engine: Engine) -> Iterator[Any]:
    from joblib import Parallel

    yield from Parallel(n_jobs=jobs, return_as="list" if engine == "ray" else "generator_unordered")(calls)


class _TaskRaised(Exception):
    """A task's own error, told from the death of a worker."""


def _guarded(work: Callable[[Task], Result], number: int, task: Task) -> tuple[int, Result | None, Exception | None]:
    try:
        return number, work(task), None
    except Exception as error:
        return number, None, error


@contextmanager
def _cluster(engine: Engine, jobs: int, address: str | None) -> Iterator[None]:
    """Have joblib use the engine; without an address a cluster of processes is started here, and ended."""
    from joblib import effective_n_jobs, parallel_config

    processes = int(effective_n_jobs(jobs))  # before joblib knows of the cluster
    with ExitStack() as stack:
        if engine == "ray":
            _start_ray(stack, processes, address)
        elif engine == "dask":
            _start_dask(stack, processes, address)
        if engine != "local":
            stack.enter_context(parallel_config(backend=engine))
        yield


def _start_ray(stack: ExitStack, processes: int, address: str | None) -> None:
    try:
        ray: Any = import_module("ray")
        import_module("ray.util.joblib").register_ray()
    except ImportError:
        raise MissingExtra("The engine ray needs Ray; install surepick-experiments[ray].") from None
    where: dict[str, Any] = {"num_cpus": processes, "include_dashboard": False} if address is None else {}
    try:
        ray.init(address=address, log_to_driver=False, configure_logging=False, **where)
    except ConnectionError as error:
        raise InvalidInput(f"There is no Ray cluster at {address} ({error}).") from None
    stack.callback(ray.shutdown)


def _start_dask(stack: ExitStack, processes: int, address: str | None) -> None:
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise MissingExtra("The engine dask needs Dask; install surepick-experiments[dask].") from None
    try:
        where = address or stack.enter_context(
            distributed.LocalCluster(n_workers=processes, threads_per_worker=1, processes=True, dashboard_address=None)
        )
        stack.enter_context(distributed.Client(where, timeout="5s"))
    except (OSError, TimeoutError) as error:
        raise InvalidInput(f"There is no Dask scheduler at {address} ({error}).") from None
