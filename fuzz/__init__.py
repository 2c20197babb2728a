"""Machines that look for faults: random input for compiled functions and for readers of files."""
