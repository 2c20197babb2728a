"""Curves of training."""

import pytest

pytest.importorskip("matplotlib")

from kernelcore.report import training_curves

HISTORIES = {
    "AP": [{"dev_loss": 0.5, "dev_auc": 0.6}, {"dev_loss": 0.3, "dev_auc": 0.8}],
    "DC": [{"dev_loss": 0.4}],
    "none": [],
}


def test_a_panel_per_quantity_and_a_line_per_system():
    figure = training_curves(HISTORIES, {"dev_loss": "Loss", "dev_auc": "AUC"})
    drawn = figure.to_matplotlib()
    loss, auc = drawn.axes
    assert [panel.get_title() for panel in (loss, auc)] == ["Loss", "AUC"]
    assert [line.get_label() for line in loss.get_lines()] == ["AP", "DC"]
    assert loss.get_lines()[0].get_xydata().tolist() == [[1, 0.5], [2, 0.3]]
    assert auc.get_lines()[0].get_ydata().tolist() == [0.6, 0.8]
    assert len(drawn.legends) == 1
    assert figure.alt == (
        "Loss and AUC by epoch. AP: 0.5 to 0.3 in 2 epochs; DC: 0.4 to 0.4 in 1 epochs; "
        "AP: 0.6 to 0.8 in 2 epochs."
    )
    assert figure.to_png("dark")[:4] == b"\x89PNG"


def test_nothing_to_draw_is_refused():
    for histories, quantities in (
        ({}, {"dev_loss": "Loss"}),
        (HISTORIES, {}),
        ({"AP": []}, {}),
    ):
        with pytest.raises(ValueError, match="something to draw"):
            training_curves(histories, quantities)
