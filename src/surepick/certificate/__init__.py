"""Proofs of verdicts as plain data, checked by code that shares nothing with the code that found them."""

from surepick.certificate.checker import ARITHMETIC_ONLY, FORMAT, Checked, digest, verify_certificate
from surepick.errors import CertificateRefused

__all__ = ["ARITHMETIC_ONLY", "FORMAT", "CertificateRefused", "Checked", "digest", "verify_certificate"]
