"""Best-arm identification: problems, policies and verdicts. See docs/identify.md."""
