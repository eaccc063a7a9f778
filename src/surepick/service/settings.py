"""How the service is set up: environment variables SUREPICK_…, or the options of `surepick serve`."""

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Each has an environment variable of its name, such as SUREPICK_DATABASE."""

    model_config = SettingsConfigDict(env_prefix="SUREPICK_", frozen=True)

    database: str = "sqlite:///surepick.db"
    token_hash: str = ""
    """SHA-256 of the admin's token, as hexadecimal digits; without it nobody is admin."""
    public_url: str = ""
    """Where judges reach the service, if that is not the address an admin's request came to."""
    planners: int = Field(default=2, ge=0, le=64)
    """Planning processes; with 0 other machines plan and observe."""
    link_days: float = Field(default=30.0, gt=0)
    """How long a judge's link is valid."""
    upload_bytes: int = Field(default=20_000_000, gt=0)
    """Most bytes of a request that creates a study; images included."""
    image_bytes: int = Field(default=2_000_000, gt=0)
    items: int = Field(default=10_000, gt=1)
    """Most items of a study."""
    features: int = Field(default=1_000, gt=0)
    """Most features of an item."""
    rate: float = Field(default=50.0, gt=0)
    """Requests a second that one judge may keep up; four seconds' worth at once."""
