"""What no method can beat, and what the formulas of the literature promise. See docs/limits.md.

Reading order: `divergence`, `instance`, `transport`, `alternatives`.
"""
