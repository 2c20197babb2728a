"""Likelihoods of captions and written captions, beside plain programs of torch.

The weights are those of a captioner that was fitted for one epoch, on features that were drawn.
"""

from functools import cache

import numpy as np
import pytest
from common import caption_texts, size

torch = pytest.importorskip("torch")

from kernelcore.deep import Captioner  # noqa: E402

N_UNITS, BEAM_SIZE = size(256, 16), 3


@cache
def fitted():
    """A captioner, features of photos, and raw captions, about five of each photo."""
    texts, n_photos = caption_texts(), size(400, 60)
    rng = np.random.default_rng(0)
    captioner = Captioner(
        score="likelihood",
        n_components=N_UNITS,
        n_embedding=N_UNITS,
        min_count=1,
        n_epochs=1,
        rng=0,
    )
    photos = rng.standard_normal((n_photos, 64), np.float32)
    owners = np.repeat(np.arange(n_photos), 5)
    captioner.fit(photos, texts[: 5 * n_photos], caption_image=owners)
    return captioner, rng.standard_normal((200, 64), np.float32), texts


def first_states(space, photos):
    """State of the LSTM of torch after each photo."""
    inputs = space.images(torch.from_numpy(photos)).unsqueeze(1)
    return space.lstm(inputs)[1]


@torch.no_grad()
def every_pair(captioner, photos, texts, at_once=500):
    """Log-likelihoods of all pairs, each read from its start, in padded batches."""
    space, sentences = captioner.space_, captioner._encode(texts)
    result = np.empty((len(photos), len(texts)), np.float32)
    both = first_states(space, photos)
    for start in range(0, len(texts), at_once):
        ids, lengths = sentences.take(torch.arange(start, min(start + at_once, len(texts))))
        n, width = ids.shape
        symbols = torch.full((n, width + 2), space.boundary)
        symbols[:, 1:-1] = ids
        symbols[torch.arange(n), lengths + 1] = space.boundary
        is_read = torch.arange(width + 1) <= lengths.unsqueeze(1)
        is_read &= torch.arange(width + 1) < space.max_tokens
        for row in range(len(photos)):
            state = tuple(one[:, row : row + 1].expand(-1, n, -1).contiguous() for one in both)
            states, _ = space.lstm(space.words(symbols[:, :-1]), state)
            logs = space.decoder(states).log_softmax(2)
            chosen = logs.gather(2, symbols[:, 1:].unsqueeze(2)).squeeze(2)
            result[row, start : start + n] = (chosen * is_read).sum(1).numpy()
    return result


def beam_search(captioner, photo):
    """Symbols of the best caption, with lists of beams."""
    space = captioner.space_
    beams = [(0.0, [space.boundary], first_states(space, photo[np.newaxis]))]
    best = (-np.inf, [])
    for n_words in range(space.max_tokens + 1):
        if not beams or best[0] >= beams[0][0]:
            break
        if n_words == space.max_tokens:  # a caption of all words ends by itself
            return max([best, (beams[0][0], beams[0][1][1:])], key=lambda one: one[0])[1]
        longer = []
        for total, symbols, state in beams:
            states, after = space.lstm(space.words(torch.tensor([[symbols[-1]]])), state)
            logs = space.decoder(states[0, 0]).log_softmax(0)
            logs[0] = -np.inf
            if n_words == 0:
                logs[space.boundary] = -np.inf
            values, chosen = (one.tolist() for one in logs.topk(min(BEAM_SIZE, len(logs))))
            longer += [
                (total + value, [*symbols, symbol], after)
                for value, symbol in zip(values, chosen, strict=True)
            ]
        longer = sorted(longer, key=lambda one: -one[0])[:BEAM_SIZE]
        ended = [(total, own[1:-1]) for total, own, _ in longer if own[-1] == space.boundary]
        best = max([best, *ended], key=lambda one: one[0])
        beams = [one for one in longer if one[1][-1] != space.boundary]
    return best[1]


@torch.no_grad()
def photo_by_photo(captioner, photos):
    words = captioner.vocabulary_.words
    found = [beam_search(captioner, photo) for photo in photos]
    return [" ".join(words[symbol - 1] for symbol in symbols) for symbols in found]


@pytest.mark.parametrize("peer", ["kernelcore", "torch, every pair"])
@pytest.mark.parametrize("n_captions", [1250, 2500, 5000])
def test_likelihoods(benchmark, peer, n_captions):
    captioner, photos, texts = fitted()
    photos, texts = photos[:2], texts[-size(n_captions, 40) :]
    benchmark.extra_info["work"] = "likelihoods of captions"
    benchmark.extra_info["size"] = f"2 photos, {len(texts):,} captions, {N_UNITS} units"
    found = captioner.scores(photos, texts, n_threads=1)
    np.testing.assert_allclose(
        found[:, :20], every_pair(captioner, photos, texts[:20]), atol=1e-3
    )
    if peer == "kernelcore":
        benchmark(captioner.scores, photos, texts, n_threads=1)
    else:
        benchmark(every_pair, captioner, photos, texts)


@pytest.mark.parametrize("peer", ["kernelcore", "torch, photo by photo"])
@pytest.mark.parametrize("n_photos", [50, 100, 200])
def test_written_captions(benchmark, peer, n_photos):
    captioner, photos, _ = fitted()
    photos = photos[: size(n_photos, 12)]
    benchmark.extra_info["work"] = f"captions of photos, beam of {BEAM_SIZE}"
    benchmark.extra_info["size"] = f"{len(photos):,} photos, {N_UNITS} units"
    options = {"beam_size": BEAM_SIZE, "n_threads": 1}
    found, expected = (
        captioner.generate(photos[:10], **options),
        photo_by_photo(captioner, photos[:10]),
    )
    same = [one == other for one, other in zip(found, expected, strict=True)]
    assert sum(same) >= 0.9 * len(expected)  # rounding may swap two beams
    if peer == "kernelcore":
        benchmark(captioner.generate, photos, **options)
    else:
        benchmark(photo_by_photo, captioner, photos)
