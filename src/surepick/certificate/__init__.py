"""Proofs of verdicts as plain data, checked by code that shares nothing with the code that found them."""

from surepick.certificate.chain import Chain, digest
from surepick.certificate.checker import verify_certificate
from surepick.certificate.claim import ARITHMETIC_ONLY, FORMAT, ORDER_ONLY, Checked
from surepick.errors import CertificateRefused

__all__ = [
    "ARITHMETIC_ONLY",
    "FORMAT",
    "ORDER_ONLY",
    "CertificateRefused",
    "Chain",
    "Checked",
    "digest",
    "verify_certificate",
]
