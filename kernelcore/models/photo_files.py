"""A photo ranker on disk: a folder of safetensors and JSON files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from kernelcore._reading import check_mapping, reading
from kernelcore._validation import check_choice
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.model_folder import DESCRIPTION, read_description, write_folder
from kernelcore.models.photo_inputs import Extractor
from kernelcore.models.training_captions import CaptionKernel
from kernelcore.models.training_items import TrainingItems

_KIND = "photo ranker"
_RANKER = "ranker.safetensors"


class PhotoModel(NamedTuple):
    """What a fitted photo ranker consists of; `description` is anything JSON can hold."""

    description: Mapping[str, Any]
    training: TrainingItems
    ranker: KCCARanker


def write_model(folder: str | os.PathLike[str], model: PhotoModel, *, overwrite: bool) -> None:
    """Write a model as a folder, whole or not at all."""
    about = model.training.about()

    def write_parts(temporary: Path) -> None:
        model.ranker.save(temporary / _RANKER)
        model.training.save(temporary)

    write_folder(
        folder, _KIND, {**model.description, **about}, write_parts, overwrite=overwrite
    )


def read_model(
    folder: str | os.PathLike[str], extractors: Sequence[Extractor] | None
) -> PhotoModel:
    """Read what `write_model` wrote; whatever is missing or damaged is named.

    `extractors` are those that no file could hold, one for each view that lacks one.
    """
    source = Path(folder)
    description = read_description(source, _KIND)
    with reading(source / DESCRIPTION):
        # Version 0.1 knew visual words alone.
        is_new = "photos" in description
        views = description["photos"] if is_new else None
        own = description if is_new else check_mapping("params", description["params"])
        kernel = own["caption_kernel"]
        check_choice("caption_kernel", kernel, get_args(CaptionKernel))
    training = TrainingItems.load(source, kernel, views, extractors)
    ranker = KCCARanker.load(source / _RANKER)
    n_training = len(ranker.kcca_.x_scores_)
    if n_training != len(training):
        raise ValueError(
            f"{source} must hold the files of one model, got {len(training)} training photos "
            f"and a ranker of {n_training}"
        )
    return PhotoModel(description, training, ranker)
