"""The live service: studies, judges and verdicts over HTTP.

Reading order: `app` (how it is put together), `judging` and `studies` (what can be done), `context` (who may).
"""
