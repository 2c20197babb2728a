"""Every reader of files against damage: what was found once, and a sample of the rest."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("onnx")

from safetensors.numpy import load, save

from fuzz.readers import READERS, TARGETS, whole
from kernelcore._store import tensor_bytes

CORPUS = Path(__file__).parents[2] / "fuzz" / "corpus"
CASES = sorted(path for name in READERS for path in (CORPUS / name).glob("*"))
CACHES = {"images.FeatureCache.load"}  # which make a damaged file again
TENSORS = [name for name in READERS if ".load" in name and name not in CACHES]
SAMPLE = 4
N_ODD = 40


@pytest.fixture(autouse=True)
def _without_real_data(monkeypatch):
    monkeypatch.delenv("KERNELCORE_DATA", raising=False)


def put(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.filterwarnings("ignore::kernelcore.datasets.DatasetWarning")
@pytest.mark.parametrize("name", READERS)
def test_whole_files_are_read(name, tmp_path):
    READERS[name].read(put(tmp_path, whole(name)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_what_was_found_is_mended(case, tmp_path):
    READERS[case.parent.name].check(Path(shutil.copytree(case, tmp_path / "files")))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_sample_of_damage(target, tmp_path):
    for seed in range(SAMPLE):
        (tmp_path / str(seed)).mkdir()
        target.run(np.random.default_rng(seed), tmp_path / str(seed))


def test_a_reader_that_names_no_file_is_found(tmp_path):
    def fail(folder):
        raise KeyError("params")

    with pytest.raises(KeyError):
        READERS["kcca.KCCA.load"]._replace(read=fail).check(tmp_path)

    def say(folder):
        raise ValueError("x is missing")

    with pytest.raises(AssertionError, match="names no file: x is missing"):
        READERS["kcca.KCCA.load"]._replace(read=say).check(tmp_path)


def damages(content):
    """A file of tensors without one of them, with one too many, of another kind, and so on."""
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    tensors = load(content)
    about = json.loads(metadata["kernelcore"])
    del about["crc32"]  # each file has the checksum of its content
    for name, array in tensors.items():
        yield f"without {name}", {n: a for n, a in tensors.items() if n != name}, about
        yield f"{name} of another shape", tensors | {name: array[..., None]}, about
        yield f"{name} of another dtype", tensors | {name: np.zeros(array.shape, "?")}, about
        if array.dtype.kind == "f" and array.size:
            yield f"NaN in {name}", tensors | {name: np.full_like(array, np.nan)}, about
    yield "one too many", tensors | {"another": np.zeros(3)}, about
    for key in about.keys() - {"kind"}:
        yield f"without {key}", tensors, {k: v for k, v in about.items() if k != key}
        yield f"another {key}", tensors, about | {key: {"x": [None]}}


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_do_not_fit_are_refused_by_name(name, tmp_path):
    files = whole(name)
    read = READERS[name].read
    for file in files:
        for what, tensors, about in damages(files[file]) if ".safetensors" in file else ():
            if (name, what) in FREE:
                continue
            kind, rest = about["kind"], {k: v for k, v in about.items() if k != "kind"}
            content = tensor_bytes(kind, tensors, rest)
            put(tmp_path, {**files, file: content})
            with pytest.raises(ValueError, match=Path(file).name):
                print(name, file, what, read(tmp_path))


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_files_that_were_cut_short_are_refused_by_name(name, share, tmp_path):
    files = whole(name)
    for file, content in files.items():
        if ".safetensors" in file:
            put(tmp_path, {**files, file: content[: int(share * (len(content) - 1))]})
            with pytest.raises(ValueError, match=Path(file).name):
                READERS[name].read(tmp_path)


def parts_of(value, path=()):
    """Every object and list within a JSON value, and where it is."""
    if isinstance(value, (dict, list)):
        yield path, value
        for key in value if isinstance(value, dict) else range(min(len(value), 2)):
            yield from parts_of(value[key], (*path, key))


def with_part(value, path, part):
    """Put a part into a copy of a JSON value."""
    if not path:
        return part
    copy = value.copy()
    copy[path[0]] = with_part(value[path[0]], path[1:], part)
    return copy


def odd_values(value):
    """Some values like a JSON value, whose parts are missing, too many, or of another type."""
    every = list(every_odd_value(value))
    return every[:: len(every) // N_ODD + 1]


def every_odd_value(value):
    yield from ([], {}, "text", 3, None)
    for path, part in parts_of(value):
        if isinstance(part, dict):
            yield with_part(value, path, part | {"unexpected": 1})
            for key in part:
                yield with_part(value, path, {k: v for k, v in part.items() if k != key})
        for key in part if isinstance(part, dict) else range(min(len(part), 2)):
            for odd in (None, "text", [[]], {"x": 1}, -1, 10**400):
                yield with_part(value, (*path, key), odd)


@pytest.mark.parametrize(
    "name",
    [
        "captions.Vocabulary.load",
        "captions.CaptionNormalizer.from_dict",
        "captions.FragmentExtractor.from_dict",
        "models.PhotoRanker.load",
        *(name for name in READERS if name.startswith("evaluation.")),
    ],
)
def test_json_that_does_not_fit_is_refused_by_name(name, tmp_path):
    files = whole(name)
    for file in files:
        if not file.endswith(".json"):
            continue
        odd = [json.dumps(value).encode() for value in odd_values(json.loads(files[file]))]
        for content in (*odd, b"[" * 200_000, b"{", b"\xff", b"1" * 4301):
            put(tmp_path, {**files, file: content})
            READERS[name].check(tmp_path)


def as_brain_floats(content):
    """Call all tensors of a file by a dtype that NumPy has not."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    for about in header.values():
        if "dtype" in about:
            begin, end = about["data_offsets"]
            about |= {"dtype": "BF16", "shape": [(end - begin) // 2]}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + size :]


@pytest.mark.parametrize("name", TENSORS)
def test_metadata_and_dtypes_of_nonsense_are_refused_by_name(name, tmp_path):
    files = whole(name)
    for file in files:
        if ".safetensors" not in file:
            continue
        content = files[file]
        size = int.from_bytes(content[:8], "little")
        about = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["kernelcore"])
        del about["crc32"]  # each file has the checksum of its content
        for metadata in ("[" * 200_000, "[]", '{"kind": ' + "1" * 4301 + "}"):
            put(tmp_path, {**files, file: save(load(content), {"kernelcore": metadata})})
            with pytest.raises(ValueError, match=Path(file).name):
                READERS[name].read(tmp_path)
        if load(content):
            put(tmp_path, {**files, file: as_brain_floats(content)})
            with pytest.raises(ValueError, match=Path(file).name):
                READERS[name].read(tmp_path)
        for odd in odd_values(about):
            if isinstance(odd, dict) and odd.get("kind") == about["kind"]:
                kind, rest = odd["kind"], {k: v for k, v in odd.items() if k != "kind"}
                put(tmp_path, {**files, file: tensor_bytes(kind, load(content), rest)})
                READERS[name].check(tmp_path)


# What readers do not check.
FREE = {("experiments.Scores.load", "another settings")}
