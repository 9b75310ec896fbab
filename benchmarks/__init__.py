"""Experiments that take longer than a reader should wait for: the record of chapter 2, ablations, seeds."""
