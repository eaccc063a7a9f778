"""What the store refuses besides unusable input."""

from surepick.errors import SurepickError


class NotFound(SurepickError):
    """There is no such study, question, judge or item, or it is somebody else's."""


class Conflict(SurepickError):
    """It contradicts what was said or decided before; nothing was changed."""


class Forbidden(SurepickError):
    """The judge's link was revoked."""
