"""Reference implementations of compiled functions, in plain NumPy or Python.

Tests, benchmarks and the documentation compare with it; the package itself never imports it.
"""
