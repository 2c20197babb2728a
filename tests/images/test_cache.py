"""Features that are kept on disk: what is found again, and what is made again."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import cv2
import numpy as np
import pytest
from refusals import refuses
from safetensors.numpy import save

from kernelcore._store import digest, load_tensors
from kernelcore.images import VisualWords
from kernelcore.images._describe import FeatureCache

RNG = np.random.default_rng(0)
PHOTOS = [RNG.integers(0, 256, (24, 32, 3), np.uint8) for _ in range(6)]
SMALL = {"colour": 4, "texture": 5, "sift": 6}


@pytest.fixture
def words():
    return VisualWords(n_words=SMALL, n_sample_points=100).fit(PHOTOS)


@pytest.fixture
def described(monkeypatch):
    """Images that were described rather than found, as (height, width)."""
    calls = []
    count = VisualWords._count

    def spy(self, photos):
        calls.extend(photo.pixels.shape[:2] for photo in photos)
        return count(self, photos)

    monkeypatch.setattr(VisualWords, "_count", spy)
    return calls


def counts(features):
    return {name: h.counts.tobytes() for name, h in features.items()}


def cached(folder):
    return sorted(folder.rglob("*.safetensors"))


def test_second_call_describes_nothing(words, described, tmp_path):
    plain = counts(words.transform(PHOTOS))
    described.clear()
    assert counts(words.transform(PHOTOS, cache_dir=tmp_path)) == plain
    assert len(described) == 6
    assert len(cached(tmp_path)) == 6
    assert counts(words.transform(PHOTOS, cache_dir=str(tmp_path))) == plain
    assert len(described) == 6
    words.transform([*PHOTOS[::-1], PHOTOS[0][:20]], cache_dir=tmp_path)
    assert described[6:] == [(20, 32)]


def test_content_identifies_a_file(words, described, tmp_path):
    cache = tmp_path / "cache"
    one, other = tmp_path / "one.png", tmp_path / "other.png"
    cv2.imwrite(str(one), PHOTOS[0])
    words.transform([one], cache_dir=cache)
    one.rename(other)
    os.utime(other, (0, 0))
    words.transform([other], cache_dir=cache)
    assert len(described) == 1
    cv2.imwrite(str(other), PHOTOS[1])
    os.utime(other, (0, 0))
    changed = words.transform([other], cache_dir=cache)
    assert len(described) == 2
    assert counts(changed) == counts(words.transform([other]))


def test_arrays_of_the_same_bytes_in_another_shape_are_other_images(words, described, tmp_path):
    words.transform([PHOTOS[0], PHOTOS[0].reshape(32, 24, 3)], cache_dir=tmp_path)
    assert sorted(described) == [(24, 32), (32, 24)]  # threads take turns as they like
    assert len(cached(tmp_path)) == 2


OTHERS = [{"n_words": {**SMALL, "colour": 3}}, {"n_levels": 2}, {"sift_step": 3},
          {"sift_bin_size": 2.0}, {"rng": 1}]  # fmt: skip


def test_other_settings_or_codebooks_have_a_cache_of_their_own(words, described, tmp_path):
    words.transform(PHOTOS, cache_dir=tmp_path)
    for other in OTHERS:
        changed = VisualWords(**{**words.get_params(), **other}).fit(PHOTOS)
        described.clear()
        found = counts(changed.transform(PHOTOS, cache_dir=tmp_path))
        assert len(described) == 6
        assert found == counts(changed.transform(PHOTOS))
    described.clear()
    limited = VisualWords(**{**words.get_params(), "max_pixels": 9999}).fit(PHOTOS)
    limited.transform(PHOTOS, cache_dir=tmp_path)
    assert not described


def test_damaged_entries_are_made_again(words, described, tmp_path):
    plain = counts(words.transform(PHOTOS, cache_dir=tmp_path))
    n_described = []
    for path, n_kept in zip(cached(tmp_path), (0, -1, 9, 9, 0), strict=False):
        path.write_bytes(path.read_bytes()[:n_kept])
    for _ in range(2):
        described.clear()
        assert counts(words.transform(PHOTOS, cache_dir=tmp_path)) == plain
        n_described.append(len(described))
    assert n_described == [5, 0]


def test_digest_depends_on_where_parts_meet():
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"ab", b"c") == digest(b"ab", b"c")


def test_a_cache_folder_that_cannot_be_made(words, tmp_path):
    (tmp_path / "file").write_text("in the way")
    refuses(OSError, ".*file", words.transform, PHOTOS, cache_dir=tmp_path / "file")


SCRIPT = """
    import sys, time
    from pathlib import Path
    from kernelcore.images import VisualWords
    count = VisualWords._count

    def slowly(*args):  # so that the run cannot end before the signal comes
        time.sleep(0.1)
        return count(*args)

    VisualWords._count = slowly
    folder = Path(sys.argv[1])
    words = VisualWords.load(folder / "words.safetensors")
    paths = sorted(folder.glob("*.png"))
    words.transform(paths, cache_dir=folder / "cache", n_threads=2)
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_an_interrupted_run_is_taken_up_where_it_was(tmp_path, described, how):
    paths = [tmp_path / f"{i:03}.png" for i in range(50)]
    for path in paths:
        cv2.imwrite(str(path), RNG.integers(0, 256, (60, 80, 3), np.uint8))
    words = VisualWords(n_words=SMALL, n_sample_images=4, n_sample_points=300).fit(paths)
    words.save(tmp_path / "words.safetensors")
    undisturbed = counts(words.transform(paths))
    described.clear()

    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while len(cached(tmp_path / "cache")) < 5 and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(how)
        stopping = time.monotonic()
        errors = process.communicate(timeout=60)[1]
    n_cached = len(cached(tmp_path / "cache"))
    assert 5 <= n_cached < 50
    assert process.returncode != 0
    if how == signal.SIGINT:
        assert "KeyboardInterrupt" in errors
        assert time.monotonic() - stopping < 5
        assert not list((tmp_path / "cache").rglob("*.tmp"))

    resumed = words.transform(paths, cache_dir=tmp_path / "cache")
    assert counts(resumed) == undisturbed
    assert len(described) == 50 - n_cached


def test_what_dead_writers_left_is_removed_when_the_cache_is_opened(words, tmp_path):
    words.transform(PHOTOS, cache_dir=tmp_path)
    left = [path.with_name(f".{path.name}.{'0f' * 16}.tmp") for path in cached(tmp_path)]
    for path in left:
        path.touch()
        os.utime(path, (0, 0))
    words.transform(PHOTOS, cache_dir=tmp_path)
    assert not any(path.exists() for path in left)


ROW = {"colour": np.arange(3, dtype=np.uint16)}


def test_entries_of_nonsense_and_of_dtypes_that_numpy_has_not_are_missing(tmp_path):
    cache, name = FeatureCache(tmp_path, "key"), "ab" * 20
    cache.save(name, ROW)
    np.testing.assert_array_equal(cache.load(name)["colour"], [0, 1, 2])
    (path,) = tmp_path.rglob("*.safetensors")
    content = path.read_bytes().replace(b'"dtype":"U16"', b'"dtype":"BF16"')
    path.write_bytes(content.replace(b" ", b"", 1))  # the header is as long as before
    refuses(ValueError, ".*bfloat16", load_tensors, path, "features of one photo")
    assert cache.load(name) is None
    for metadata in ("[" * 200_000, "[]", '{"kind": "features of one photo"}'):
        path.write_bytes(save(ROW, {"kernelcore": metadata}))
        assert cache.load(name) is None
