"""One root for everything surepick raises on purpose."""


class SurepickError(Exception):
    """Root of all errors raised by surepick; catching it catches them all."""


class InvalidInput(SurepickError, ValueError):
    """What was passed in cannot be used; the message shows the value received and a remedy."""


class NotIdentifiable(InvalidInput):
    """The measurements cannot determine what is asked, however many answers come in."""


class CertificateRefused(SurepickError):
    """A certificate does not prove what it claims."""


class MissingExtra(SurepickError, ImportError):
    """An optional dependency is needed for this; the message says which extra installs it."""
