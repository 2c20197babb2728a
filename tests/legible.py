"""Whether the texts of a figure of Matplotlib can be read."""

from itertools import combinations

LEAST_POINTS = 8
CONTRAST = 4.5  # of text and ground, as the guidelines of the web ask for


def texts_of(figure):
    """Every text that is drawn, once the figure has its layout."""
    figure.draw_without_rendering()
    found = [text for legend in figure.legends for text in legend.get_texts()]
    for ax in figure.axes:
        found += [*ax.texts, ax.title]
        if ax.get_legend() is not None:
            found += ax.get_legend().get_texts()
        if ax.axison:
            for axis in (ax.xaxis, ax.yaxis):
                found += [axis.label, axis.offsetText, *_tick_labels(axis)]
    return [text for text in found if text.get_visible() and text.get_text().strip()]


def _tick_labels(axis):
    low, high = sorted(axis.get_view_interval())
    slack = 1e-6 * (high - low)
    places = [*axis.get_ticklocs(), *axis.get_ticklocs(minor=True)]
    labels = [*axis.get_ticklabels(), *axis.get_ticklabels(minor=True)]
    found = zip(places, labels, strict=True)
    return [label for place, label in found if low - slack <= place <= high + slack]


def assert_legible(figure):
    """No text is small, leaves the figure or lies over another; return the texts."""
    texts = texts_of(figure)
    assert texts
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    for text in texts:
        assert text.get_fontsize() >= LEAST_POINTS, text
    for name, box in boxes:
        inside = figure.bbox.padded(1)
        assert inside.contains(*box.min), name
        assert inside.contains(*box.max), name
    for (name, box), (other, place) in combinations(boxes, 2):
        assert not box.padded(-0.5).overlaps(place.padded(-0.5)), f"{name!r} over {other!r}"
    return texts


def assert_contrast(figure):
    """Every text stands out from the ground of the figure."""
    from matplotlib.colors import to_rgb

    ground = _luminance(to_rgb(figure.get_facecolor()))
    for text in texts_of(figure):
        ink = _luminance(to_rgb(text.get_color()))
        darker, lighter = sorted((ground, ink))
        assert (lighter + 0.05) / (darker + 0.05) >= CONTRAST, text


def _luminance(rgb):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
