"""Every compiled function once more in plain NumPy or Python, slow and obvious.

Tests, benchmarks and the documentation compare with it; the package itself never imports it.
"""
