"""The examples hold what they show: a policy written from outside passes the contract for policies."""

from round_robin import TestRoundRobin

__all__ = ["TestRoundRobin"]
