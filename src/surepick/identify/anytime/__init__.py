"""The default policy: valid at any sampling rule, any delay and any stopping time. Proofs: docs/anytime.md."""
