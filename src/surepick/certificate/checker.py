"""The independent check of a certificate: what it claims is derived again, by code that shares nothing with policies.

Each kind has a file of its own (`features`, `exclusion`, `winner`); the order of plans and answers is checked in
`chain`.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from surepick.certificate.chain import check_chain, digest
from surepick.certificate.claim import FORMAT, Checked
from surepick.certificate.exclusion import check_exclusion
from surepick.certificate.features import check_features
from surepick.certificate.winner import check_winner
from surepick.errors import CertificateRefused

_CHECKS: Mapping[tuple[str, str], Callable[[Mapping[str, Any]], Checked]] = {
    ("features", "anytime"): check_features,
    ("features", "exclusion"): check_exclusion,
    ("winner", "winner"): check_winner,
}

# All that Python and NumPy raise on values they cannot use: ValueError also stands for LinAlgError and for integers too
# long to print, RecursionError for lists nested too deeply.
_DAMAGE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, MemoryError)


def verify_certificate(certificate: Mapping[str, Any]) -> Checked:
    """Derive the claim of a certificate again, or raise CertificateRefused with the first thing that is wrong."""
    try:
        # Certificates were first written without the field: then they are of the claim that there was.
        kind = certificate.get("claim", "features"), certificate["policy"]
        if certificate["format"] != FORMAT or kind not in _CHECKS:
            raise CertificateRefused(
                f"Certificates of format {FORMAT} can be checked that claim 'winner' or 'features'; this one has the "
                f"format {certificate['format']!r}, the claim {kind[0]!r} and the policy {kind[1]!r}."
            )
        if certificate["digest"] != digest(certificate):
            raise CertificateRefused("The digest does not match: the certificate was changed after it was written.")
        return replace(_CHECKS[kind](certificate), link=check_chain(certificate))
    except _DAMAGE as error:
        raise CertificateRefused(f"The certificate is damaged: {type(error).__name__} {error}.") from None
