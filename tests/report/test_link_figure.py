import numpy as np
import pytest
from legible import assert_contrast, assert_legible
from refusals import refuses, refuses_each

pytest.importorskip("matplotlib")
pytest.importorskip("cv2")

from kernelcore.datasets import Document
from kernelcore.report import link_figure


def garden(**changes):
    fields = {
        "doc_id": "garden", "sentences": ("A dog digs.", "It was May.", "Earth flies."),
        "images": ("dog.jpg", "tree.jpg"), "links": {(0, 0), (2, 1)},
    }  # fmt: skip
    return Document(**{**fields, **changes})


SCORES = [[0.9, 0.8], [0.1, 0.5], [0.2, 0.3]]
WORDS = {"predicted, true", "predicted, not true", "true, not predicted", "predicted"}


def axes_of(figure):
    (axes,) = figure.to_matplotlib().axes
    return axes


def lines(axes):
    """Ends of every line as heights, with what the legend calls its style."""
    styles = {}
    for line in axes.get_lines():
        if line.get_label() in WORDS:
            styles[line.get_color(), line.get_linestyle()] = line.get_label()
    kinds = [styles[line.get_color(), line.get_linestyle()] for line in axes.get_lines()]
    ends = [line.get_ydata().tolist() for line in axes.get_lines()]
    return [(*own, kind) for own, kind in zip(ends, kinds, strict=True)]


def texts(axes):
    return [text.get_text() for text in axes.texts]


def test_bad_input_is_refused():
    odd = {"document": ["garden"]}
    odd["scores"] = [[1, 2]], np.full((3, 2), np.nan), [["a", "b"]] * 3
    refuses_each(link_figure, odd, document=garden(), scores=SCORES)
    images = {"dog.jpg": np.zeros((2, 2))}
    refuses(TypeError, "uint8", link_figure, garden(), SCORES, images)


def test_the_best_links_are_drawn_and_the_better_the_wider():
    document = garden(sentences=tuple("abcdefg"), images=tuple("ABCDEFG"), links={(0, 0)})
    axes = axes_of(link_figure(document, np.diag(np.arange(7.0, 0, -1))))
    kinds = [kind for _, _, kind in lines(axes)]
    assert kinds == ["predicted, true", *["predicted, not true"] * 4]
    axes = axes_of(link_figure(garden(links=None), SCORES))
    ends = [(line.get_ydata()[1], line.get_linewidth()) for line in axes.get_lines()]
    (_, first), (_, second) = sorted(ends)
    assert first > second > 0


def test_pictures_that_cannot_be_read_are_frames_with_their_id(tmp_path):
    path = tmp_path / "dog.jpg"
    for content in (None, b"", b"no picture", b"\xff\xd8\xff\xe0 cut"):
        if content is not None:
            path.write_bytes(content)
        for given in ({"dog.jpg": path, "tree.jpg": None}, {}, None):
            axes = axes_of(link_figure(garden(), SCORES, given))
            assert set(garden().images) <= set(texts(axes))
            assert (len(axes.patches), len(axes.get_images())) == (2, 0)


def test_any_text_is_drawn_as_it_stands():
    sentences = ("$x^2$ costs 5 $", "", "word " * 500, "x" * 500, "犬が走る\x00\n\ttab")
    names = ("a" * 90, "_hidden", "$")
    document = garden(sentences=sentences, images=names, links={(4, 2)})
    figure = link_figure(document, np.eye(5, 3)).to_matplotlib("dark")
    drawn = texts(figure.axes[0])
    assert r"\$x^2\$ costs 5 \$" in drawn
    assert "\ufffd" * 5 + " tab" in drawn
    assert max(text.count("\n") for text in drawn) <= 3
    assert len([text for text in drawn if text.endswith("…")]) == 3
    assert_legible(figure)
    assert_contrast(figure)


def test_long_documents_show_what_is_linked():
    sentences = tuple(f"S{i}." for i in range(60))
    scores = np.zeros((60, 2))
    scores[50, 0], scores[55, 1] = 2, 1
    document = garden(sentences=sentences, links={(40, 0), (55, 1)})
    axes = axes_of(link_figure(document, scores))
    shown = [text for text in texts(axes) if text.startswith("S")]
    assert shown == [f"S{i}." for i in (*range(17), 40, 50, 55)]
    assert "and 40 more sentences" in texts(axes)
    assert len(lines(axes)) == 3


def test_predicted_links_are_an_assignment_judged_by_the_true_ones():
    figure = link_figure(garden(), SCORES, system="AP")
    axes = axes_of(figure)
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    sentences = [heights[sentence] for sentence in garden().sentences]
    images = [heights[image] for image in garden().images]
    # (0, 0) with 0.9 and (1, 1) with 0.5 have the greatest sum; (0, 1) alone has more.
    assert set(lines(axes)) == {
        (images[0], sentences[0], "predicted, true"),
        (images[1], sentences[1], "predicted, not true"),
        (images[1], sentences[2], "true, not predicted"),
    }
    assert (sentences, images) == (sorted(sentences), sorted(images))
    assert figure.title == "Links in garden by AP"
    assert "2 true links. Of the 2 predicted links 1 is true" in figure.alt


def test_unknown_links_are_not_judged():
    figure = link_figure(garden(links=None), SCORES)
    assert {kind for _, _, kind in lines(axes_of(figure))} == {"predicted"}
    assert "unknown, with 2 predicted links" in figure.alt
    assert "with 0 true links. Of" in link_figure(garden(links=()), SCORES).alt


def test_pictures_come_from_files_and_pixels(tmp_path):
    pixels = np.zeros((400, 200, 3), np.uint8)
    pixels[:, :, 0] = 250
    pytest.importorskip("PIL.Image").fromarray(pixels).save(tmp_path / "dog.png")
    images = {"dog.jpg": tmp_path / "dog.png", "tree.jpg": pixels}
    axes = axes_of(link_figure(garden(), SCORES, images))
    assert not set(texts(axes)) & images.keys()
    for picture in axes.get_images():
        left, right, bottom, top = picture.get_extent()
        assert abs(bottom - top) == pytest.approx(2 * (right - left))  # not squashed
        assert (picture.get_array()[..., 0] > 200).all()
