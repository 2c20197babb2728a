"""Machines that look for faults: random input for compiled functions and file readers."""
