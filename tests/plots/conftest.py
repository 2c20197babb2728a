"""Figures of pyplot are drawn without a screen, and none is left open."""

import pytest


@pytest.fixture(autouse=True)
def pyplot():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    plt.close("all")
    yield plt
    plt.close("all")


@pytest.fixture
def figure():
    """A figure that pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(6, 4.5), layout="constrained")


@pytest.fixture
def ax(figure):
    return figure.subplots()
