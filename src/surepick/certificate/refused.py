"""The one error of the checker."""

from surepick.errors import SurepickError


class CertificateRefused(SurepickError):
    """A certificate does not prove what it claims."""
