"""Likelihoods of captions and written captions, beside plain programs of torch.

The weights are those of a captioner that was fitted for one epoch, on features that were drawn.
"""

import functools

import data
import numpy as np
import pytest
from results import target

torch = pytest.importorskip("torch")

from kernelcore.deep import Captioner  # noqa: E402

N_FITTED, N_FEATURES = data.size(400, 60), 64
N_COMPONENTS = data.size(256, 16)
N_PHOTOS, N_IMAGES, N_CAPTIONS = data.size(200, 12), data.size(2, 2), data.size(5000, 40)
BEAM_SIZE = 3


@functools.cache
def fitted():
    """A captioner, features of photos, and raw captions, about five of each photo."""
    texts = flickr_texts() if data.FLICKR.is_dir() else drawn_texts()
    rng = np.random.default_rng(0)
    captions = texts[: 5 * N_FITTED]
    photos = rng.standard_normal((N_FITTED, N_FEATURES), np.float32)
    captioner = Captioner(
        score="likelihood",
        n_components=N_COMPONENTS,
        n_embedding=N_COMPONENTS,
        min_count=1,
        n_epochs=1,
        rng=0,
    )
    owners = np.arange(len(captions)) // 5
    captioner.fit(photos, captions, caption_image=owners)
    return captioner, rng.standard_normal((N_PHOTOS, N_FEATURES), np.float32), texts


def flickr_texts():
    lines = (data.FLICKR / "Flickr8k.token.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition("\t")[2] for line in lines]


def drawn_texts():
    images = data.as_lists(data.drawn_captions())
    return [" ".join(f"w{word}" for word in own) or "w0" for image in images for own in image]


def first_states(space, photos):
    """State of the LSTM of torch after each photo."""
    inputs = space.images(torch.from_numpy(photos)).unsqueeze(1)
    return space.lstm(inputs)[1]


def every_pair(captioner, photos, texts, at_once=500):
    """Log-likelihoods of all pairs, each read from its start, in padded batches."""
    space = captioner.space_
    sentences = captioner._encode(texts)
    result = np.empty((len(photos), len(texts)), np.float32)
    with torch.no_grad():
        outputs, memories = first_states(space, photos)
        for row in range(len(photos)):
            for start in range(0, len(texts), at_once):
                part = sentences.take(torch.arange(start, min(start + at_once, len(texts))))
                ids, lengths = part
                n, width = ids.shape
                symbols = torch.full((n, width + 2), space.boundary)
                symbols[:, 1:-1] = ids
                symbols[torch.arange(n), lengths + 1] = space.boundary
                state = tuple(
                    one[:, row : row + 1].expand(-1, n, -1).contiguous()
                    for one in (outputs, memories)
                )
                states, _ = space.lstm(space.words(symbols[:, :-1]), state)
                logs = space.decoder(states).log_softmax(2)
                chosen = logs.gather(2, symbols[:, 1:].unsqueeze(2)).squeeze(2)
                places = torch.arange(width + 1)
                is_read = places <= lengths.unsqueeze(1)
                is_read &= places < space.max_tokens
                result[row, start : start + n] = (chosen * is_read).sum(1).numpy()
    return result


def photo_by_photo(captioner, photos):
    """Beam search for one photo after another, with lists of beams."""
    space, words = captioner.space_, captioner.vocabulary_.words
    found = []
    with torch.no_grad():
        for photo in photos:
            outputs, memories = first_states(space, photo[np.newaxis])
            beams = [(0.0, [space.boundary], (outputs, memories))]
            best = (-np.inf, [])
            for n_words in range(space.max_tokens + 1):
                if not beams or best[0] >= beams[0][0]:
                    break
                if n_words == space.max_tokens:  # a caption of all words ends by itself
                    best = max([best, (beams[0][0], beams[0][1][1:])], key=lambda one: one[0])
                    break
                longer = []
                for total, symbols, state in beams:
                    last = torch.tensor([[symbols[-1]]])
                    states, after = space.lstm(space.words(last), state)
                    logs = space.decoder(states[0, 0]).log_softmax(0)
                    logs[0] = -np.inf
                    if n_words == 0:
                        logs[space.boundary] = -np.inf
                    values, chosen = logs.topk(min(BEAM_SIZE, len(logs)))
                    longer += [
                        (total + value, [*symbols, symbol], after)
                        for value, symbol in zip(values.tolist(), chosen.tolist(), strict=True)
                    ]
                longer = sorted(longer, key=lambda one: -one[0])[:BEAM_SIZE]
                ended = [one for one in longer if one[1][-1] == space.boundary]
                best = max(
                    [best, *((total, symbols[1:-1]) for total, symbols, _ in ended)],
                    key=lambda one: one[0],
                )
                beams = [one for one in longer if one[1][-1] != space.boundary]
            found.append(" ".join(words[symbol - 1] for symbol in best[1]))
    return found


@pytest.mark.ways("kernelcore", "torch, every pair")
def test_likelihoods(measure):
    captioner, photos, texts = fitted()
    photos, texts = photos[:N_IMAGES], texts[-N_CAPTIONS:]
    few = every_pair(captioner, photos, texts[:20])
    measure(
        "likelihoods of captions",
        {
            "kernelcore": lambda: captioner.scores(photos, texts, n_threads=1),
            "torch, every pair": lambda: every_pair(captioner, photos, texts),
        },
        check=lambda found: np.testing.assert_allclose(found[:, :20], few, atol=1e-3),
        shape=f"{len(photos)} photos, {len(texts):,} captions, {N_COMPONENTS} units",
        size=float(len(photos) * len(texts)),
        unit="pairs",
        targets=[target("speed >= 1 x torch, every pair")],
    )


@pytest.mark.ways("kernelcore", "torch, photo by photo")
def test_written_captions(measure):
    captioner, photos, _ = fitted()
    expected = photo_by_photo(captioner, photos[:10])

    def check(found):
        same = [one == other for one, other in zip(found, expected, strict=False)]
        assert sum(same) >= 0.9 * len(expected)  # rounding may swap two beams

    measure(
        f"captions of photos, beam of {BEAM_SIZE}",
        {
            "kernelcore": lambda: captioner.generate(photos, beam_size=BEAM_SIZE, n_threads=1),
            "torch, photo by photo": lambda: photo_by_photo(captioner, photos),
        },
        check=check,
        shape=f"{len(photos):,} photos, {N_COMPONENTS} units",
        size=float(len(photos)),
        unit="photos",
        targets=[target("speed >= 5 x torch, photo by photo")],
    )
