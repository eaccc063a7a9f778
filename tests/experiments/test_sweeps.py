"""Studies on this machine and on clusters: the same rows everywhere, and a worker that dies loses nothing.

The clusters are of two processes each, on this machine, reached by their address like any other.
"""

import os
from pathlib import Path
from subprocess import getoutput

import pytest

from surepick import InvalidInput
from surepick.io.tables import read_table
from surepick_experiments.studies import Options, find_study, run_study
from surepick_experiments.studies.engine import SweepFailed, run_everywhere

pytestmark = pytest.mark.filterwarnings("ignore")  # of the clusters, not of ours

SMALL = Options(runs=2, seed=5, dims=(3,), policies=("rage-glm",))


@pytest.fixture(scope="module")
def dask():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def ray():
    pytest.importorskip("ray")
    os.environ["RAY_AUTH_MODE"] = "disabled"
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    yield cluster.address
    cluster.shutdown()


@pytest.fixture(params=["local", pytest.param("dask", marks=pytest.mark.posix), "ray"])
def where(request) -> dict:
    address = None if request.param == "local" else request.getfixturevalue(request.param)
    return {"engine": request.param, "address": address, "jobs": 2}


def without_time(rows: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> tuple[Path, list[dict]]:
    out = tmp_path_factory.mktemp("alone")
    return out, run_study(find_study("soare"), SMALL, out=out, jobs=1)[0]


def test_the_same_rows_everywhere_and_after_a_worker_died(where, alone, tmp_path):
    _, alone = alone
    rows, _ = run_study(find_study("soare"), SMALL, out=tmp_path / "there", **where)
    assert without_time(rows) == without_time(alone)
    assert read_table(tmp_path / "there" / "rows.parquet").text("best") == [row["best"] for row in alone]
    # A task whose first worker is killed by it: the shell's parent.
    fatal = f"cd {tmp_path}; if [ ! -e mark ]; then touch mark; kill -9 $PPID; fi; echo 5"
    tasks = [f"echo {number}" for number in range(5)] + [fatal]
    results = dict(run_everywhere(getoutput, tasks, **where))
    assert results == {number: str(number) for number in range(6)}


def test_a_task_that_raises_ends_the_sweep_with_its_error():
    with pytest.raises(ValueError, match="invalid literal"):
        list(run_everywhere(int, ["1", "two"], jobs=1))


def test_workers_that_die_again_and_again_are_given_up():
    with pytest.raises(SweepFailed, match="goes on"):
        list(run_everywhere(getoutput, ["kill -9 $PPID"] * 2, jobs=2))


def test_an_interrupted_sweep_goes_on(alone):
    out, whole = alone
    journal = out / "rows.jsonl"
    first = journal.read_text().splitlines()[0]
    journal.write_text(first + "\n" + first[:30])  # as a kill leaves it
    steps = []
    rows, _ = run_study(
        find_study("soare"), SMALL, out=out, jobs=1, progress=lambda done, total: steps.append((done, total))
    )
    assert without_time(rows) == without_time(whole)
    assert steps == [(1, 2), (2, 2)]


@pytest.mark.posix  # Dask locks files by fcntl, or on a real Windows by msvcrt
def test_an_address_without_a_cluster_is_refused():
    with pytest.raises(InvalidInput, match="--engine ray or --engine dask"):
        list(run_everywhere(int, ["1"], jobs=1, address="127.0.0.1:1"))
    with pytest.raises(InvalidInput, match=r"no Dask scheduler at tcp://127\.0\.0\.1:1"):
        list(run_everywhere(int, ["1"], jobs=1, engine="dask", address="tcp://127.0.0.1:1"))
