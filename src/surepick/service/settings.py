"""How the service is set up: environment variables SUREPICK_…, or the options of `surepick serve`."""

import hashlib
import secrets
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from surepick.errors import InvalidInput

SHORTEST_TOKEN = 16


class Settings(BaseSettings):
    """Each has an environment variable of its name, such as SUREPICK_DATABASE."""

    model_config = SettingsConfigDict(env_prefix="SUREPICK_", frozen=True)

    database: str = "sqlite:///surepick.db"
    token_hash: str = ""
    """SHA-256 of the admin's token, as hexadecimal digits; without it nobody is admin."""
    public_url: str = ""
    """Where judges reach the service; without it links have the address that an admin's connection came to."""
    planners: int = Field(default=2, ge=0, le=64)
    """Planning processes; with 0 only other machines plan and compute what dashboards show."""
    link_days: float = Field(default=30.0, gt=0)
    """How long a judge's link is valid."""
    upload_bytes: int = Field(default=20_000_000, gt=0)
    """Most bytes of a request that brings items or arms, images included."""
    image_bytes: int = Field(default=2_000_000, gt=0)
    items: int = Field(default=10_000, gt=1)
    """Most items of a study."""
    features: int = Field(default=1_000, gt=0)
    """Most features of an item."""
    studies: int = Field(default=1_000, gt=0)
    """Most studies of a project that are not archived."""
    streams: int = Field(default=1_000, gt=0)
    """Most streams of a project."""
    judges: int = Field(default=10_000, gt=0)
    """Most judges of a study."""
    retention_days: float | None = Field(default=None, gt=0)
    """Archived studies, and streams, whose logs have not grown for this long are deleted; by default none is."""
    log: Literal["text", "json"] = "text"
    """How the service writes its log to standard error."""
    oidc_issuer: str = ""
    """The OpenID Connect provider where admins log in, as it calls itself; without it they log in by token only."""
    oidc_client_id: str = ""
    oidc_client_secret: str = ""
    held: int = Field(default=10, gt=0, le=100)
    """Open questions that one judge may hold: a stage is evaluated only when all of its questions are answered."""
    rate: float = Field(default=50.0, gt=0)
    """Requests per second that one judge may keep up; four seconds' worth at once."""


def is_web_address(url: str) -> bool:
    """Whether this is http:// or https:// and a host, and nothing that a link must not have."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not (parts.query or parts.fragment)


def new_token() -> str:
    """A random token."""
    return secrets.token_urlsafe(24)


def hash_token(token: str) -> str:
    """What is kept of the admin's token, for `Settings.token_hash`."""
    if len(token) < SHORTEST_TOKEN:
        raise InvalidInput(
            f"An admin's token must have at least {SHORTEST_TOKEN} characters, got {len(token)}; leave it out and one "
            "is made."
        )
    # One round of SHA-256 is enough: a token is random and long, unlike a password.
    return hashlib.sha256(token.encode()).hexdigest()
