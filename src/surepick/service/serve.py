"""`surepick serve`: check that it is safe to start, say who gets in, and run the service as processes.

A supervisor forks all other processes and replaces whichever dies:

    supervisor             has everything imported, so a replacement starts at once; nothing else runs in it
      workers              answer requests
      planners             ingest, evaluate, plan: that may take seconds, and no request may wait for it
      insights, forecasts  what the dashboard shows besides; nobody waits for it, so they run at a lower priority

Each process ends when the supervisor is gone, for whatever reason, so a service that was killed leaves nothing behind.
Where processes cannot be forked (Windows), one process does everything, in threads.
"""

import io
import ipaddress
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import segno
import uvicorn

from surepick.errors import InvalidInput
from surepick.service.app import create_app
from surepick.service.connection import HEAD_SECONDS, Connection, limit_log, most_connections
from surepick.service.credentials import Credentials, shared_secret
from surepick.service.dashboard_worker import update_forecasts, update_insights
from surepick.service.first_study import FirstStudy, about
from surepick.service.memory import give_back_memory
from surepick.service.outage import OUTAGE
from surepick.service.settings import Settings, hash_token, is_web_address, new_token
from surepick.service.telemetry import log_as_json
from surepick.store import Database, Planner, open_database
from surepick.store.database import UNAVAILABLE, reason_of
from surepick.store.operating import delete_expired
from surepick.store.planner import release

EVERY_ADDRESS = ("0.0.0.0", "::")

BIND_SECONDS = 10.0
"""How long to wait for a port that the workers of a killed predecessor are about to leave."""

WATCH_SECONDS = 0.05
RESTART_SECONDS = 0.5
"""A process that dies sooner is replaced only after this long: something is wrong, and haste does not help."""

BUSY_SECONDS = 0.02
IDLE_SECONDS = 0.25
RENEW_SECONDS = 1.0
LINGER_SECONDS = 0.2
"""Messages of a study enter the log about this often: several in one transaction keep the database free for others."""

RETENTION_SECONDS = 3_600.0
"""How often studies and streams that are too old are looked for."""

SURVEY_SECONDS = 1.0
"""How often a planner looks at studies in which nothing happens."""

SHARE_SECONDS = 0.1
"""How long it plans such studies before it looks again whether somebody waits."""

INSIGHT_NICENESS, FORECAST_NICENESS = 5, 19
"""Of the processes whose work judges do not wait for. Insights are of studies that somebody looks at. Forecasts take
longest and change least: on a busy machine they get a few hundredths of a processor."""

MEMORY_SECONDS = 10.0
"""How often a process gives back memory that it does not need."""

BACKGROUND_SECONDS = 120.0
"""After this long a process for insights or forecasts ends and is replaced. Each of them replays whole studies, and
Python keeps part of the room that this took, however much is given back."""

END_SECONDS = 4.0
"""How long processes have to end in good order; then they are killed. What is not committed was not acknowledged."""

logger = logging.getLogger("surepick.processes")

_ENDING = threading.Event()
"""Set when a service in one process ends."""


def run(
    url: str,
    *,
    host: str,
    port: int,
    token: str,
    workers: int,
    first: FirstStudy | None,
    tell: Callable[[str], object],
    public_url: str = "",
    plain_http: bool = False,
) -> None:
    """Serve until interrupted, with the study `first` if given; `tell` gets the address and how to get in."""
    if public_url and not is_web_address(public_url):
        raise InvalidInput(f"--public-url must be like https://surepick.example.org, got {public_url!r}.")
    if not is_loopback(host):
        _refuse_exposed(host, token, encrypted=public_url.startswith("https://"), plain_http=plain_http)
    if workers > 1 and not hasattr(os, "fork"):
        raise InvalidInput(
            f"--workers {workers} needs a system that forks processes, which this one does not; leave it out, or run "
            "the service in Docker or WSL (docs/install.md)."
        )
    secret = token or new_token()
    settings = Settings(database=url, token_hash=hash_token(secret), public_url=public_url)
    if settings.log == "json":
        log_as_json()
    database = open_database(url)
    try:
        shared_secret(database)  # makes it, so this also tells whether the database can be written
    except UNAVAILABLE as error:
        shown = database.url.render_as_string(hide_password=True)
        raise InvalidInput(f"The database {shown} cannot be used ({reason_of(error)}); check its rights.") from None
    listening = _listen(host, port)
    base = _reached(host, listening.getsockname()[1])
    tell(f"surepick serves {database.url.render_as_string(hide_password=True)} at {base}")
    reached = public_url.rstrip("/") or base
    page = "/"
    if first is not None:
        study, link = first.begin(database, settings, time.time())
        page = f"/study/{study}"
    tell(f"Admin: {reached}{page} with the token given" if token else f"Admin: {reached}{page}#{secret}")
    if first is not None:
        code = Credentials(shared_secret(database), settings.token_hash).shared_code(study, link.turn)
        _tell_link(f"{reached}/join/{study}#{code}", tell)
        for sentence in about(database, study):
            tell(sentence)
    database.close()  # before the fork: processes must not share a connection
    with TemporaryDirectory(prefix="surepick-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # where workers count together
        processes = processes_of(settings, workers, listening)
        (supervise if hasattr(os, "fork") else run_in_threads)(processes)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_exposed(host: str, token: str, *, encrypted: bool, plain_http: bool) -> None:
    """Refuse an address that other machines reach, unless somebody has thought about who can read and enter."""
    if not token:
        raise InvalidInput(
            f"{host} can be reached from other machines, so the service needs --token (or SUREPICK_TOKEN); with "
            "127.0.0.1 it generates one."
        )
    if not encrypted and not plain_http:
        raise InvalidInput(
            f"{host} can be reached from other machines, and tokens would travel unencrypted. Put a proxy with TLS in "
            "front and name its address by --public-url https://… (docs/service.md has recipes), or allow this by "
            "--plain-http."
        )


def _listen(host: str, port: int) -> socket.socket:
    end = time.monotonic() + BIND_SECONDS
    while True:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # With its protocol named: asyncio sends without delay (TCP_NODELAY) only where a socket says that it is TCP.
        # Otherwise the body of every response after the first waits 40 ms for the acknowledgement of its head.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # Lets a restarted service have the port while connections of its predecessor are still closing.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            listening.close()
            if time.monotonic() > end:
                raise InvalidInput(f"Port {port} of {host} cannot be used ({error}); choose another.") from None
            time.sleep(0.1)
        else:
            return listening


def _reached(host: str, port: int) -> str:
    """The address at which other machines, or at least this one, reach the service."""
    shown = _own_address(host) if host in EVERY_ADDRESS else host
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


def _own_address(host: str) -> str:
    """This machine's address in its network; nothing is sent to find it out."""
    family, elsewhere = (socket.AF_INET6, "2001:db8::1") if ":" in host else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((elsewhere, 9))  # for datagrams this only chooses the way they would take
            return str(probe.getsockname()[0])
        except OSError:  # there is no network
            return "::1" if ":" in host else "127.0.0.1"


def _tell_link(link: str, tell: Callable[[str], object]) -> None:
    """The shared link, as text and as a QR code, and who can open it."""
    tell(f"Judges: {link}")
    if is_loopback(urlsplit(link).hostname or ""):
        tell(
            "Only this machine can open it. For colleagues in your network, start it again with --host 0.0.0.0 "
            '--plain-http --token "a phrase of your own", of 16 characters or more; for the internet, with '
            "--public-url and a proxy in front (docs/service.md)."
        )
        return
    drawn = io.StringIO()
    segno.make(link, error="l").terminal(drawn, border=2, compact=True)
    tell(drawn.getvalue())


@dataclass(frozen=True)
class ChildProcess:
    """What a process does, and what to clean up when it has died."""

    name: str
    do: Callable[[], None]
    clean_up: Callable[[], None] = lambda: None
    is_renewed: bool = False
    """Whether it ends by itself now and then, to be replaced."""


def processes_of(settings: Settings, workers: int, listening: socket.socket) -> list[ChildProcess]:
    """All processes of a service."""
    processes = [ChildProcess(f"worker {number}", lambda: _serve(settings, listening)) for number in range(workers)]
    for number in range(settings.planners):
        # The same name for a replacement: it may claim at once what its predecessor held.
        name = f"{socket.gethostname()}-{os.getpid()}-{number}"
        processes.append(_planner(settings, name))
    if settings.planners:
        processes += [
            _background("insights", settings, update_insights, INSIGHT_NICENESS),
            _background("forecasts", settings, update_forecasts, FORECAST_NICENESS),
        ]
    if settings.planners and settings.retention_days is not None:
        processes.append(ChildProcess("retention", lambda: _delete_expired(settings)))
    return processes


def supervise(processes: Sequence[ChildProcess]) -> None:
    """Run all until SIGINT or SIGTERM."""
    stopping = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopping
        stopping = True

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    running = {_fork(process): (process, time.monotonic()) for process in processes}
    while not stopping:
        # Asked without blocking: Python resumes a blocking wait after a signal handler, and would not see `stopping`.
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(WATCH_SECONDS)
            continue
        if pid not in running:  # an orphan, inherited as the first process of a container
            continue
        process, begun = running.pop(pid)
        code = os.waitstatus_to_exitcode(status)
        if code or not process.is_renewed:
            logger.warning("The process %s ended (%s) and is replaced.", process.name, code)
        if time.monotonic() - begun < RESTART_SECONDS:
            time.sleep(RESTART_SECONDS)
        running[_fork(process, replaces=True)] = (process, time.monotonic())
    for pid in running:
        os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + END_SECONDS
    while running:
        pid, _ = os.waitpid(-1, os.WNOHANG)
        running.pop(pid, None)
        if not pid:
            time.sleep(WATCH_SECONDS)
        if time.monotonic() > end:
            for late in running:
                os.kill(late, signal.SIGKILL)
            end = float("inf")


def run_in_threads(processes: Sequence[ChildProcess]) -> None:
    """Run the first, which answers requests, in this thread until it is interrupted, and the others in threads."""
    serving, *others = processes
    limit_log()
    _ENDING.clear()
    threads = [threading.Thread(target=process.do, name=process.name, daemon=True) for process in others]
    for thread in threads:
        thread.start()
    try:
        serving.do()
    finally:
        _ENDING.set()
        for thread in threads:
            thread.join(END_SECONDS)


def _fork(process: ChildProcess, *, replaces: bool = False) -> int:
    """Start a process. Only this thread runs here and no connection is open, so nothing is shared by mistake."""
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt at the terminal reaches the supervisor too
        threading.Thread(target=_watch, args=(supervisor,), daemon=True).start()
        limit_log()
        if replaces:
            _clean_up_after(process)
        process.do()
        code = 0
    except InvalidInput as error:  # the database cannot be opened; the next process in this place tries again
        OUTAGE.note(error)
    except Exception:
        logger.exception("The process %s failed.", process.name)
    finally:
        os._exit(code)


def _clean_up_after(process: ChildProcess) -> None:
    # Not in the supervisor: while it waited for a database that does not answer, it would not react to a signal.
    try:
        process.clean_up()
    except UNAVAILABLE as error:  # what was held is available when its lease expires
        OUTAGE.note(error)


def _watch(supervisor: int) -> None:
    """Give free memory back now and then, and end with the supervisor."""
    given_back = time.monotonic()
    # A process whose parent dies gets another parent; this is how it learns that the supervisor was killed.
    while os.getppid() == supervisor:
        time.sleep(WATCH_SECONDS)
        if time.monotonic() > given_back + MEMORY_SECONDS:
            give_back_memory()
            given_back = time.monotonic()
    os._exit(0)  # at once: whatever is not committed was not acknowledged


def _serve(settings: Settings, listening: socket.socket) -> None:
    Connection.most = most_connections()
    config = uvicorn.Config(
        create_app(settings),
        http=Connection,
        log_level="warning",
        access_log=False,
        timeout_keep_alive=int(HEAD_SECONDS),
        timeout_graceful_shutdown=int(END_SECONDS / 2),
    )
    uvicorn.Server(config).run(sockets=[listening])


def _planner(settings: Settings, name: str) -> ChildProcess:
    def plan() -> None:
        database, stopping = Database(settings.database), _stop_signal()
        planner = Planner(database, name=name, linger=LINGER_SECONDS, survey=SURVEY_SECONDS, share=SHARE_SECONDS)
        threading.Thread(target=_renew, args=(planner, stopping), daemon=True).start()
        _repeat(database, planner.round, stopping)
        release(database, name)

    def clean_up() -> None:
        database = Database(settings.database)
        release(database, name)
        database.close()

    return ChildProcess("planner", plan, clean_up)


def _background(name: str, settings: Settings, update: Callable[[Database], bool], niceness: int) -> ChildProcess:
    def work() -> None:
        stopping, is_process = _stop_signal(), threading.current_thread() is threading.main_thread()
        if is_process:
            os.nice(niceness)
        database, begun = Database(settings.database), time.monotonic()

        def step() -> bool:
            if is_process and time.monotonic() > begun + BACKGROUND_SECONDS:
                stopping.set()
                return False
            return update(database)

        _repeat(database, step, stopping)

    return ChildProcess(name, work, is_renewed=True)


def _delete_expired(settings: Settings) -> None:
    database, stopping = Database(settings.database), _stop_signal()
    assert settings.retention_days is not None
    while not stopping.is_set():
        try:
            studies_deleted, streams_deleted = delete_expired(database, settings.retention_days)
            if studies_deleted or streams_deleted:
                logger.warning("Deleted %d studies and %d streams by age.", studies_deleted, streams_deleted)
        except UNAVAILABLE as error:
            OUTAGE.note(error)
        stopping.wait(RETENTION_SECONDS)


def _stop_signal() -> threading.Event:
    """Set when this process, or the service of which this is a thread, is to end."""
    if threading.current_thread() is not threading.main_thread():
        return _ENDING
    stopping = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.set())
    return stopping


def _repeat(database: Database, do: Callable[[], bool], stopping: threading.Event) -> None:
    """Every BUSY_SECONDS while there was work in the last five seconds, otherwise every IDLE_SECONDS."""
    busy = time.monotonic()
    while not stopping.is_set():
        try:
            OUTAGE.probe(database)
            if do():
                busy = time.monotonic()
        except UNAVAILABLE as error:
            OUTAGE.note(error)
            stopping.wait(1.0)
        except Exception:
            logger.exception("Trying again in a second.")
            stopping.wait(1.0)
        stopping.wait(BUSY_SECONDS if time.monotonic() - busy < 5.0 else IDLE_SECONDS)


def _renew(planner: Planner, stopping: threading.Event) -> None:
    while not stopping.wait(RENEW_SECONDS):
        try:
            planner.renew()
        except UNAVAILABLE as error:
            OUTAGE.note(error)
        except Exception:
            logger.exception("A lease could not be renewed; trying again.")
