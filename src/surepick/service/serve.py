"""The service as processes: a supervisor, workers that answer requests, and helpers (see `helpers`).

Whichever of them dies is replaced; if the supervisor dies all others end, and the same command starts it all again.
"""

import ipaddress
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from surepick.errors import InvalidInput
from surepick.service.app import create_app
from surepick.service.auth import Gate, hash_token, new_token, shared_secret
from surepick.service.helpers import Foreman
from surepick.service.models import StudySettings
from surepick.service.settings import Settings
from surepick.service.uploads import items_from_json, items_from_table, study_settings
from surepick.store import Database, judges, open_database, studies

BIND_SECONDS = 10.0
"""How long to wait for a port that a killed predecessor's workers are about to leave."""


def run(
    url: str,
    *,
    host: str,
    port: int,
    token: str,
    workers: int,
    items: Path | None,
    tell: Callable[[str], object],
) -> None:
    """Serve until interrupted; says where, and who gets in."""
    if not is_loopback(host) and not token:
        raise InvalidInput(
            f"{host} can be reached from other machines, so the service needs --token (or SUREPICK_TOKEN); with "
            "127.0.0.1 it makes one itself."
        )
    secret = token or new_token()
    os.environ["SUREPICK_DATABASE"] = url
    os.environ["SUREPICK_TOKEN_HASH"] = hash_token(secret)
    os.environ.pop("SUREPICK_TOKEN", None)  # the workers need only its hash
    listening = _listen(host, port)
    base = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    database = open_database(url)
    tell(f"surepick serves {database.url.render_as_string(hide_password=True)} at {base}")
    tell(f"Admin: {base}/#{secret}" if not token else f"Admin: {base}/ with the token given")
    if items is not None:
        tell(f"Judge: {_study_from_file(items, database, base)}")
    database.close()
    config = uvicorn.Config(
        "surepick.service.serve:worker", factory=True, workers=workers, log_level="warning", access_log=False
    )
    with Foreman():
        Multiprocess(config, sockets=[listening]).run()


def worker() -> FastAPI:
    """The application in a worker process, which ends when its supervisor has."""
    supervisor = os.getppid()

    def end_with_supervisor() -> None:
        while os.getppid() == supervisor:
            time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGKILL)  # nothing unfinished was acknowledged

    threading.Thread(target=end_with_supervisor, daemon=True).start()
    return create_app()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    end = time.monotonic() + BIND_SECONDS
    while True:
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            listening.close()
            if time.monotonic() > end or not port:
                raise InvalidInput(
                    f"Port {port} of {host} cannot be used ({error.strerror}); choose another."
                ) from None
            time.sleep(0.1)
        else:
            listening.set_inheritable(True)
            return listening


def _study_from_file(path: Path, database: Database, base: str) -> str:
    """A study of the items in a file, and a link for a judge."""
    settings = Settings()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); check the name.") from None
    rows, _ = items_from_table(path.name, content, settings)
    found, pictures = items_from_json(rows, settings)
    now = time.time()
    with database.writing() as connection:
        study = studies.create(
            connection, study_settings(StudySettings(title=path.stem or "items")), found, pictures, now
        )
        judge = judges.add(connection, study, "", now)
    gate = Gate(shared_secret(database), settings.token_hash)
    return f"{base}/judge#{gate.link(study, judge, now + 86_400 * settings.link_days)}"
