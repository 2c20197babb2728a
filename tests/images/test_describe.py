"""What visual words, networks and regions share: forms of photos, failures and the cache."""

import io
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time

import cv2
import numpy as np
import pytest
from PIL import Image
from refusals import refuses
from safetensors.numpy import save

from kernelcore._store import digest, load_tensors
from kernelcore.images import (
    CNN,
    Grid,
    RegionCNN,
    UnreadableImagesError,
    UnreadableImagesWarning,
    VisualWords,
    _describe,
    cnn,
    regions,
    words,
)

RNG = np.random.default_rng(0)
PHOTOS = [RNG.integers(0, 256, (24, 32, 3), np.uint8) for _ in range(6)]
SMALL = {"colour": 4, "texture": 5, "sift": 6}


def visual_words(**options):
    return VisualWords(**{"n_words": SMALL, "n_sample_points": 100} | options).fit(PHOTOS)


def network(seed=0, **options):
    """A map of 7 channels."""
    torch = pytest.importorskip("torch")
    layer, rng = torch.nn.Conv2d(3, 7, 4, stride=4), torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=rng)
    return CNN(torch.nn.Sequential(layer, torch.nn.ReLU()), **{"input_size": 32} | options)


def described_regions(seed=0, **options):
    return RegionCNN(**{"cnn": network(seed), "max_regions": 3} | options)


OTHERS = {  # what a row depends on
    visual_words: [
        {"n_words": {**SMALL, "colour": 3}}, {"n_levels": 2}, {"sift_step": 3},
        {"sift_bin_size": 2.0}, {"rng": 1}],
    network: [
        {"input_size": 36}, {"std": (1, 1, 1)}, {"mean": (0, 0, 0)}, {"batch_size": 2},
        {"seed": 1}],
    described_regions: [
        {"max_regions": 2}, {"pooling": "crop"}, {"proposers": [Grid((2,))]}, {"seed": 1}],
}  # fmt: skip


@pytest.fixture(params=OTHERS, scope="module")
def make(request):
    return request.param


@pytest.fixture
def describer(make):
    return make()


@pytest.fixture
def described(monkeypatch):
    """Sizes of the photos that were described rather than found."""
    sizes = []

    def spy(images, describe_batch, **options):
        def counted(photos):
            sizes.extend(photo.pixels.shape[:2] for photo in photos)
            return describe_batch(photos)

        return _describe.describe(images, counted, **options)

    for module in (words, cnn, regions):
        monkeypatch.setattr(module, "describe", spy)
    return sizes


def rows(found):
    """The bits of each photo."""
    if isinstance(found, dict):
        arrays = [own for h in found.values() for own in (h.counts.astype(int), h.totals)]
    elif hasattr(found, "offsets"):
        parts = list(zip(found.offsets, found.offsets[1:], strict=False))
        own = found.features, found.boxes, found.scores, found.labels
        arrays = [[array[a:b] for a, b in parts] for array in own] + [found.sizes]
    else:
        arrays = [found.features]
    photos = zip(*arrays, strict=True)
    return [tuple(np.array(part).tobytes() for part in photo) for photo in photos]


def cached(folder):
    return sorted(folder.rglob("*.safetensors"))


def in_png(photo):
    return cv2.imencode(".png", photo[..., ::-1])[1].tobytes()


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / f"{i}.png" for i in range(len(PHOTOS))]
    for path, photo in zip(paths, PHOTOS, strict=True):
        path.write_bytes(in_png(photo))
    return paths


def test_a_row_depends_on_the_photo_alone_in_every_form(describer, files, tmp_path):
    expected = rows(describer.transform(PHOTOS, n_threads=1))
    assert rows(describer.transform(tuple(files), n_threads=3)) == expected
    assert rows(describer.transform(np.stack(PHOTOS))) == expected
    png, cache = in_png(PHOTOS[3]), tmp_path / "cache"
    opened = Image.open(io.BytesIO(png))
    forms = [files[3], str(files[3]), png, PHOTOS[3], Image.fromarray(PHOTOS[3]), opened]
    for _ in range(2):
        assert rows(describer.transform(forms, cache_dir=cache)) == [expected[3]] * 6
    assert len(cached(cache)) == 2  # of the file and of pixels
    assert rows(describer.transform([opened] * 40, n_threads=4)) == [expected[3]] * 40


def test_progress_counts_photos(describer):
    steps = []
    describer.transform(PHOTOS, n_threads=2, progress=lambda *step: steps.append(step))
    each = [(i, 6) for i in range(1, 7)]
    assert steps == each
    if isinstance(describer, VisualWords):
        VisualWords(n_words=SMALL).fit(PHOTOS, progress=lambda *step: steps.append(step))
        assert steps == [*each, *each, (1, 3), (2, 3), (3, 3)]


def test_a_second_call_describes_nothing(describer, described, tmp_path):
    plain = rows(describer.transform(PHOTOS))
    described.clear()
    for cache in (tmp_path, str(tmp_path)):
        assert rows(describer.transform(PHOTOS, cache_dir=cache)) == plain
        assert described == [(24, 32)] * 6
    assert len(cached(tmp_path)) == 6
    describer.transform([*PHOTOS[::-1], PHOTOS[0][:20]], cache_dir=tmp_path)
    assert described[6:] == [(20, 32)]


def test_content_identifies_a_file(describer, described, files, tmp_path):
    cache, other = tmp_path / "cache", tmp_path / "other.png"
    describer.transform(files[:1], cache_dir=cache)
    files[0].rename(other)
    os.utime(other, (0, 0))
    describer.transform([other], cache_dir=cache)
    assert len(described) == 1
    other.write_bytes(in_png(PHOTOS[1]))
    os.utime(other, (0, 0))
    changed = describer.transform([other], cache_dir=cache)
    assert len(described) == 2
    assert rows(changed) == rows(describer.transform([other]))


def test_arrays_of_the_same_bytes_in_another_shape_are_other_photos(
    describer, described, tmp_path
):
    describer.transform([PHOTOS[0], PHOTOS[0].reshape(32, 24, 3)], cache_dir=tmp_path)
    assert sorted(described) == [(24, 32), (32, 24)]  # threads take turns as they like
    assert len(cached(tmp_path)) == 2


def test_other_settings_have_a_cache_of_their_own(make, described, tmp_path):
    make().transform(PHOTOS, cache_dir=tmp_path)
    for n, other in enumerate(OTHERS[make], start=2):
        changed = make(**other)
        described.clear()
        found = rows(changed.transform(PHOTOS, cache_dir=tmp_path))
        assert len(described) == 6
        assert found == rows(changed.transform(PHOTOS))
        assert len(list(tmp_path.iterdir())) == n
    limit = {"max_pixels": 9999}
    options = {"cnn": network(**limit)} if make is described_regions else limit
    same = make(**options)
    described.clear()
    same.transform(PHOTOS, cache_dir=tmp_path)
    assert not described


def test_damaged_entries_are_made_again(describer, described, tmp_path):
    plain = rows(describer.transform(PHOTOS, cache_dir=tmp_path))
    n_described = []
    for path, n_kept in zip(cached(tmp_path), (0, -1, 9, 9, 0), strict=False):
        path.write_bytes(path.read_bytes()[:n_kept])
    for _ in range(2):
        described.clear()
        assert rows(describer.transform(PHOTOS, cache_dir=tmp_path)) == plain
        n_described.append(len(described))
    assert n_described == [5, 0]


@pytest.fixture
def odd(files, tmp_path):
    """Good photos at 0, 2 and 4; nothing else can be read."""
    (tmp_path / "text.jpg").write_text("A dog runs.")
    files[1] = tmp_path / "text.jpg"
    files[3] = Image.open(io.BytesIO(in_png(PHOTOS[3])[:-400]))
    files[5].write_bytes(files[5].read_bytes()[:-200])
    return files


ODD = {
    1: ("text.jpg: ", "supported format"),
    3: ("images[3]: it", "damaged"),
    5: ("5.png: ", "truncated"),
}


def calls_of(describer):
    """Visual words look at photos twice."""
    is_learned = isinstance(describer, VisualWords)
    return [describer.transform, *([VisualWords(n_words=SMALL).fit] if is_learned else [])]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_one_error_lists_all_photos_that_cannot_be_read(describer, odd, n_threads):
    for call in calls_of(describer):
        with pytest.raises(UnreadableImagesError, match="3 of 6") as caught:
            call(odd, n_threads=n_threads)
        error = pickle.loads(pickle.dumps(caught.value))  # it travels between processes
        assert list(error.failures) == list(ODD)
        assert str(error) == str(caught.value)
        for line, parts in zip(str(error).splitlines()[1:], ODD.values(), strict=True):
            assert all(part in line for part in parts)


def test_files_that_are_not_there_are_noticed_before_any_work(describer, described, odd):
    odd[4].unlink()
    refuses(UnreadableImagesError, "4 of 6", describer.transform, odd)
    assert not described


def test_photos_are_left_out_with_one_warning_a_call_and_tried_again(describer, odd, tmp_path):
    expected = rows(describer.transform([PHOTOS[i] for i in (0, 2, 4)]))
    for _ in range(2):
        with pytest.warns(UnreadableImagesWarning, match=r"3 of 6 .*\n.*text\.jpg") as caught:
            found = describer.transform(odd, on_error="skip", cache_dir=tmp_path / "cache")
        assert [warning.filename for warning in caught] == [__file__]
        assert (found.rows.tolist(), list(found.failures)) == ([0, 2, 4], list(ODD))
        assert rows(found) == expected
    refuses(UnreadableImagesError, "1 of 1", describer.transform, [b""], on_error="skip")


def test_visual_words_are_learned_from_what_can_be_read(odd):
    with pytest.warns(UnreadableImagesWarning, match=r"3 of 6") as caught:
        learned = VisualWords(n_words=SMALL).fit(odd, on_error="skip")
    assert [warning.filename for warning in caught] == [__file__]
    assert learned.codebooks_["colour"].n_words == SMALL["colour"]


def test_arguments_are_checked(describer):
    for call in calls_of(describer):
        for error, named, images in (
            (ValueError, "images", []),
            (TypeError, "images .*str", "photo.jpg"),
            (TypeError, "images", iter(["photo.jpg"])),
            (ValueError, "images .*shape", PHOTOS[0]),
            (TypeError, r"images\[1\] .*None", ["photo.jpg", None]),
            (TypeError, r"images\[0\] .*float64", [PHOTOS[0] / 255]),
            (ValueError, r"images\[0\] .*shape", [PHOTOS[0][:, :, :2]]),
        ):
            refuses(error, named, call, images)
        refuses(ValueError, "on_error", call, PHOTOS, on_error="ignore")
        refuses(ValueError, "n_threads", call, PHOTOS, n_threads=0)


def test_a_cache_folder_that_cannot_be_made(describer, tmp_path):
    (tmp_path / "file").write_text("in the way")
    refuses(OSError, ".*file", describer.transform, PHOTOS, cache_dir=tmp_path / "file")


def test_what_dead_writers_left_is_removed_when_the_cache_is_opened(describer, tmp_path):
    describer.transform(PHOTOS, cache_dir=tmp_path)
    left = [path.with_name(f".{path.name}.{'0f' * 16}.tmp") for path in cached(tmp_path)]
    for path in left:
        path.touch()
        os.utime(path, (0, 0))
    describer.transform(PHOTOS, cache_dir=tmp_path)
    assert not any(path.exists() for path in left)


def test_digest_depends_on_where_parts_meet():
    assert digest(b"ab", b"c") != digest(b"a", b"bc")
    assert digest(b"ab", b"c") == digest(b"ab", b"c")


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
    learned = VisualWords(n_words=SMALL, n_sample_images=4, n_sample_points=300).fit(paths)
    learned.save(tmp_path / "words.safetensors")
    undisturbed = rows(learned.transform(paths))
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

    resumed = learned.transform(paths, cache_dir=tmp_path / "cache")
    assert rows(resumed) == undisturbed
    assert len(described) == 50 - n_cached


ROW = {"colour": np.arange(3, dtype=np.uint16)}


def test_entries_of_nonsense_and_of_dtypes_that_numpy_has_not_are_missing(tmp_path):
    cache, name = _describe.FeatureCache(tmp_path, "key"), "ab" * 20
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
