"""`surepick serve`: check that it is safe to start, say who gets in, and run."""

import ipaddress
import socket
import time
from collections.abc import Callable
from pathlib import Path

from surepick.errors import InvalidInput
from surepick.service.auth import Gate, hash_token, new_token, shared_secret
from surepick.service.models import StudySettings
from surepick.service.processes import jobs_of, supervise
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
    settings = Settings(database=url, token_hash=hash_token(secret))
    database = open_database(url)
    listening = _listen(host, port)
    base = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
    tell(f"surepick serves {database.url.render_as_string(hide_password=True)} at {base}")
    tell(f"Admin: {base}/ with the token given" if token else f"Admin: {base}/#{secret}")
    if items is not None:
        tell(f"Judge: {_study_from_file(items, database, settings, base)}")
    database.close()
    supervise(jobs_of(settings, workers, listening))


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
            if time.monotonic() > end:
                raise InvalidInput(f"Port {port} of {host} cannot be used ({error}); choose another.") from None
            time.sleep(0.1)
        else:
            return listening


def _study_from_file(path: Path, database: Database, settings: Settings, base: str) -> str:
    """A study of the items in a file, and a link for a judge."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}); check the name.") from None
    rows, _ = items_from_table(path.name, content, settings)
    found, pictures = items_from_json(rows, settings)
    wanted = study_settings(StudySettings(title=path.stem or "items"))
    now = time.time()
    with database.writing() as connection:
        study = studies.create(connection, wanted, found, pictures, now)
        judge = judges.add(connection, study, "", now)
    gate = Gate(shared_secret(database), settings.token_hash)
    return f"{base}/judge#{gate.link(study, judge, now + 86_400 * settings.link_days)}"
