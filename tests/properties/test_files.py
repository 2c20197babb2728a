"""Every file that is read: what is written comes back, and damage is an error that names it."""

import errno
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cv2")
pytest.importorskip("dask")
pytest.importorskip("onnx")
pytest.importorskip("torch")

import damage
from formats import CAPTIONS, JUDGMENTS, LEXICAL, WORDNET, Format, files, sample
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from limits import bounded
from model_formats import IMAGES, MODELS, NETWORKS
from resealed import holds_tensors, reseal_all, tensors_in, with_tensors

FORMATS: dict[str, Format] = {
    **CAPTIONS, **JUDGMENTS, **LEXICAL, **MODELS, **IMAGES, **NETWORKS,
}  # fmt: skip
MADE = [name for name, form in FORMATS.items() if form.is_sealed and callable(form.values)]
REFUSED = object()
LIMITS = 2**29, 5.0  # bytes and seconds
CORPUS = Path(__file__).with_name("corpus")
pytestmark = pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
formats = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def drawn(form: Format, data: Any) -> Any:
    return form.values() if callable(form.values) else data.draw(form.values)


@contextmanager
def written(form: Format, value: Any) -> Iterator[Path]:
    """Give a folder into which a value was written; what cannot be read is not written."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            form.write(value, Path(folder))
        except ValueError:
            assert not files_in(Path(folder))
            reject()
        yield Path(folder)


def plain(value: Any) -> Any:
    """Return the value, or the files that it is saved as, without what writers draw."""
    if not hasattr(value, "save"):
        return value
    with tempfile.TemporaryDirectory() as folder:
        value.save(Path(folder, "x"))
        contents = [path.read_bytes() for path in files_in(Path(folder))]
    return [re.sub(rb'"(parts|crc32)": "[0-9a-f]+"', b"", content) for content in contents]


def outcome(form: Format, folder: Path) -> Any:
    """Return what is read, or `REFUSED` if the error names the file."""
    try:
        with bounded(*LIMITS):
            return form.read(folder)
    except FileNotFoundError:  # that a damage.damaged file names
        return REFUSED
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENAMETOOLONG or str(folder) not in str(error):
            raise AssertionError("the error does not name the file") from error
        return REFUSED


def refuse_or_use(form: Format, folder: Path) -> None:
    found = outcome(form, folder)
    if found is not REFUSED:
        with bounded(*LIMITS), np.errstate(all="ignore"), suppress(ValueError):
            form.use(found)


@formats
@given(data=st.data())
@settings(max_examples=8)
def test_what_is_written_comes_back(form: Format, data: Any) -> None:
    value = drawn(form, data)
    with written(form, value) as folder:
        assert plain(form.read(folder)) == plain(form.expected(value))


@formats
@given(data=st.data())
@settings(max_examples=8)
def test_damage_is_refused_by_name_or_changes_nothing(form: Format, data: Any) -> None:
    value = drawn(form, data)
    with written(form, value) as folder:
        path = data.draw(st.sampled_from(files_in(folder)))
        path.write_bytes(data.draw(damage.damaged(path.read_bytes())))
        found = outcome(form, folder)
        if form.is_sealed:
            assert found is REFUSED or plain(found) == plain(form.expected(value))


@formats
@given(data=st.data())
@settings(max_examples=8)
def test_files_of_strangers_are_refused_or_can_be_used(form: Format, data: Any) -> None:
    with written(form, drawn(form, data)) as folder:
        damage.forge(data.draw, data.draw(st.sampled_from(files_in(folder))))
        reseal_all(folder)
        refuse_or_use(form, folder)


@pytest.mark.parametrize("name", MADE)
def test_parts_that_do_not_fit_are_refused(name: str) -> None:
    form = FORMATS[name]
    with written(form, form.values()) as folder:
        for path in filter(holds_tensors, files_in(folder)):
            whole = path.read_bytes()
            tensors, about = tensors_in(whole)
            for what, *parts in damage.misfits(tensors, about):
                path.write_bytes(with_tensors(*parts))
                reseal_all(folder)
                assert outcome(form, folder) is REFUSED, what
            for other in damage.beyond_memory(about):
                path.write_bytes(with_tensors(tensors, other))
                reseal_all(folder)
                refuse_or_use(form, folder)
            path.write_bytes(whole)


COCO, LONG = sample("coco.json"), "x" * 300
FOUND: dict[str, tuple[str, dict[str, Any]]] = {  # by chance
    "a name too long": ("load_flickr", {"x.token.txt": f"{LONG}\na.jpg#0\tA dog.\n"}),
    "a photo's name too long": ("COCO", {"x": COCO.replace("a.jpg", LONG)}),
    "an id too long": ("COCO", {"x": COCO.replace("70", "7" * 4301)}),
    "votes beyond memory": ("load_flickr_crowd", {"x.txt": "a\tb\t1\t999999999999999\t0\n"}),
    "an endless number": ("load_word_vectors, GloVe", {"x.txt": f"a 1\nb {'9' * 13000}"}),
    "a size too long": ("load_word_vectors, word2vec", {"x.txt": "9" * 5000 + " 3\n"}),
    "a circle": ("WordNet", WORDNET | {"data.noun": sample("circle.noun")}),
    "the end of the process": ("ONNX", {"x.onnx": (CORPUS / "operator.onnx").read_bytes()}),
}


@pytest.mark.parametrize("finding", FOUND)
def test_what_was_found_is_mended(finding: str, tmp_path: Path) -> None:
    name, contents = FOUND[finding]
    files(st.none(), contents, None).write(None, tmp_path)
    outcome(FORMATS[name], tmp_path)
