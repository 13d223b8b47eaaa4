"""Measurements: ratios against bare databases in the same run, on the same disk."""
