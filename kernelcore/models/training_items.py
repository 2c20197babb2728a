"""Training photos and captions, and how new ones are compared with them."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kernelcore._progress import Progress
from kernelcore._reading import reading
from kernelcore._validation import Array
from kernelcore.captions import CaptionNormalizer, EncodedCaptions, Vocabulary
from kernelcore.images import SpatialHistograms, VisualWords
from kernelcore.images._each import OnError
from kernelcore.images.decode import ImageSource
from kernelcore.kernels import average, bag_of_words, spatial_pyramid, word_sequence
from kernelcore.models.model_folder import read_json
from kernelcore.models.pairs import Pairs, count

Photos: TypeAlias = Sequence[ImageSource] | Mapping[str, SpatialHistograms]
"""Photos as files or pixels, or as the histograms that `VisualWords.transform` made of them."""

CaptionKernel: TypeAlias = Literal["bag_of_words", "word_sequence"]
"""How captions are compared: by their words alone, or by their order too."""

Captions: TypeAlias = Sequence[Sequence[str]] | Sequence[str]
"""Raw captions of each photo, or one after another."""

Nested: TypeAlias = Sequence[Sequence[str]]

_NORMALIZER = "normalizer.json"
_VOCABULARY = "vocabulary.json"
_VISUAL_WORDS = "visual_words.safetensors"
_CAPTIONS = "captions.safetensors"


@dataclass(frozen=True, eq=False)
class TrainingItems:
    """What kernel values of new photos and captions are computed from.

    Attributes
    ----------
    visual_words : VisualWords
        Fitted; turns photos into histograms.
    normalizer : CaptionNormalizer
        Fitted; turns captions into words.
    vocabulary : Vocabulary
        Words of the training captions.
    histograms : dict of str to SpatialHistograms
        Training photos by feature.
    captions : EncodedCaptions
        Training captions; photo i has captions i.
    caption_kernel : {"bag_of_words", "word_sequence"}
        How captions are compared.
    """

    visual_words: VisualWords
    normalizer: CaptionNormalizer
    vocabulary: Vocabulary
    histograms: dict[str, SpatialHistograms]
    captions: EncodedCaptions
    caption_kernel: CaptionKernel

    def __post_init__(self) -> None:
        lengths = {len(self.captions), *map(len, self.histograms.values())}
        if len(lengths) != 1:
            raise ValueError(
                f"histograms and captions must be of the same photos, got {sorted(lengths)}"
            )

    def __len__(self) -> int:
        return len(self.captions)

    @classmethod
    def collect(
        cls,
        photos: Photos,
        captions: Nested,
        visual_words: VisualWords,
        normalizer: CaptionNormalizer,
        caption_kernel: CaptionKernel,
        *,
        cache_dir: str | os.PathLike[str] | None,
        on_error: OnError,
        n_threads: int | None,
        progress: Progress,
    ) -> TrainingItems:
        """Learn codebooks and vocabulary from the items, and describe them.

        Codebooks of `visual_words` that were fitted before are used as they are.
        """
        if not hasattr(visual_words, "codebooks_"):
            if isinstance(photos, Mapping):
                raise ValueError(
                    "visual_words must be fitted where photos are given as histograms"
                )
            visual_words = VisualWords(**visual_words.get_params()).fit(
                photos, on_error=on_error, n_threads=n_threads, progress=progress
            )
        histograms, rows = describe(
            visual_words,
            photos,
            cache_dir=cache_dir,
            on_error=on_error,
            n_threads=n_threads,
            progress=progress,
        )
        texts = [captions[i] for i in rows]
        normalizer = copy.copy(normalizer).fit(texts)
        words = normalizer.normalize_images(texts, progress=progress)
        vocabulary = Vocabulary.from_captions(words)
        encoded = vocabulary.encode(words)
        return cls(visual_words, normalizer, vocabulary, histograms, encoded, caption_kernel)

    def encode(self, captions: Captions) -> EncodedCaptions:
        """Turn raw captions into ids of the vocabulary."""
        return self.vocabulary.encode(self.normalizer.normalize_images(captions))

    def photo_kernel(
        self,
        histograms: Mapping[str, SpatialHistograms] | None = None,
        *,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Spatial pyramid kernel of photos with the training photos, mean over the features.

        Without `histograms` the symmetric kernel of the training photos themselves.
        """
        return average(
            [
                spatial_pyramid(
                    training if histograms is None else histograms[name],
                    None if histograms is None else training,
                    dtype=np.float32,
                    n_threads=n_threads,
                    progress=progress,
                )
                for name, training in self.histograms.items()
            ]
        )

    def text_kernel(
        self,
        captions: EncodedCaptions | None = None,
        *,
        n_threads: int | None = None,
        progress: Progress = False,
    ) -> Array:
        """Similarity of captions with the training captions, words weighted by sqrt(idf).

        Without `captions` the symmetric kernel of the training captions themselves.
        """
        rows = self.captions if captions is None else captions
        others = None if captions is None else self.captions
        weights = np.sqrt(self.vocabulary.idf())
        unknown_weight = float(np.sqrt(self.vocabulary.unknown_idf))
        if self.caption_kernel == "bag_of_words":
            return bag_of_words(
                rows, others, weights=weights, unknown_weight=unknown_weight, dtype=np.float32
            )
        return word_sequence(
            rows,
            others,
            word_weights=weights,
            unknown_weight=unknown_weight,
            dtype=np.float32,
            n_threads=n_threads,
            progress=progress,
        )

    def save(self, folder: Path) -> None:
        """Write the parts as files of `folder`."""
        normalizer = json.dumps(self.normalizer.to_dict(), ensure_ascii=False)
        (folder / _NORMALIZER).write_text(normalizer, encoding="utf-8")
        self.vocabulary.save(folder / _VOCABULARY)
        self.visual_words.save(folder / _VISUAL_WORDS)
        self.captions.save(folder / _CAPTIONS)
        for name, histograms in self.histograms.items():
            histograms.save(folder / _photos_file(name))

    @classmethod
    def load(cls, folder: Path, caption_kernel: CaptionKernel) -> TrainingItems:
        """Read what `save` wrote; a damaged file is a ValueError."""
        with reading(folder / _NORMALIZER):
            normalizer = CaptionNormalizer.from_dict(read_json(folder / _NORMALIZER))
        vocabulary = Vocabulary.load(folder / _VOCABULARY)
        with reading(folder / _CAPTIONS):
            captions = EncodedCaptions.load(folder / _CAPTIONS)
            if captions.n_words != len(vocabulary):
                raise ValueError(
                    f"n_words must be that of the vocabulary ({len(vocabulary)}), "
                    f"got {captions.n_words}"
                )
        visual_words = VisualWords.load(folder / _VISUAL_WORDS)
        histograms = {}
        for name, codebook in visual_words.codebooks_.items():
            with reading(folder / _photos_file(name)):
                own = SpatialHistograms.load(folder / _photos_file(name))
                sizes = codebook.n_words, visual_words.n_levels
                if (own.n_words, own.n_levels) != sizes:
                    raise ValueError(
                        f"it must have the words and levels of its codebook, {sizes}, "
                        f"got {own.n_words} and {own.n_levels}"
                    )
            histograms[name] = own
        return cls(visual_words, normalizer, vocabulary, histograms, captions, caption_kernel)


def describe(
    visual_words: VisualWords,
    photos: Photos,
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    on_error: OnError = "raise",
    n_threads: int | None = None,
    progress: Progress = False,
) -> tuple[dict[str, SpatialHistograms], npt.NDArray[np.intp]]:
    """Histograms of photos by feature, and the position of the photo behind each row."""
    names = list(visual_words.codebooks_)
    if isinstance(photos, Mapping):
        if set(photos) != set(names):
            raise ValueError(
                f"photos must have the histograms of {', '.join(names)}, "
                f"got {', '.join(map(str, photos)) or 'none'}"
            )
        return {name: photos[name] for name in names}, np.arange(count(photos))
    features = visual_words.transform(
        photos,
        cache_dir=cache_dir,
        on_error=on_error,
        n_threads=n_threads,
        progress=progress,
    )
    return features, features.rows


def names_of(photos: Photos) -> list[str]:
    """Path of each photo, or its number where it has none."""
    sources = range(count(photos)) if isinstance(photos, Mapping) else photos
    return [
        os.fspath(photo) if isinstance(photo, (str, os.PathLike)) else f"photo {i}"
        for i, photo in enumerate(sources)
    ]


def by_photo(
    name: str, photos: Photos, captions: Any, caption_image: Any = None
) -> tuple[Photos, Nested]:
    """Return photos with the captions of each, nested; `name` stands for captions in errors.

    Photos without captions are left out where captions stand one after another.
    """
    if isinstance(captions, str):
        raise TypeError(f"{name} must be a sequence of lists of strings, got {captions!r}")
    if caption_image is not None or (captions and all(isinstance(c, str) for c in captions)):
        pairs = Pairs.of(photos, captions, caption_image).compact()
        own: list[list[str]] = [[] for _ in range(count(pairs.images))]
        for text, owner in zip(pairs.captions, pairs.caption_image, strict=True):
            own[owner].append(text)
        return pairs.images, own
    if len(captions) != count(photos):
        raise ValueError(
            f"{name} must hold the captions of each photo ({count(photos)}), "
            f"got {len(captions)}"
        )
    for i, nested in enumerate(captions):
        if isinstance(nested, str):
            raise TypeError(f"{name} must be nested as photos, captions: [{i}] is a string")
        if not nested:
            raise ValueError(f"{name} must hold a caption of each photo, got none for [{i}]")
    return photos, captions


def _photos_file(feature: str) -> str:
    return f"photos-{feature}.safetensors"
