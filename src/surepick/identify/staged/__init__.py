"""Policies that plan a stage, wait for all of its answers, and evaluate it: RAGE-GLM and the static designs."""
