"""The live service: studies, judges and verdicts over HTTP.

Reading order: `app` (how it is put together), `judging`, `studies` and `streams` (what can be done), `dependencies`
(who may do it), `serve` (the processes).
"""
