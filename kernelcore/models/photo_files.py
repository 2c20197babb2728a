"""A photo ranker on disk: a folder of safetensors and JSON files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

from kernelcore._reading import check_mapping, reading
from kernelcore._validation import check_choice
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.model_folder import DESCRIPTION, read_description, write_folder
from kernelcore.models.training_items import CaptionKernel, TrainingItems

_KIND = "photo ranker"
_RANKER = "ranker.safetensors"


class PhotoModel(NamedTuple):
    """What a fitted photo ranker consists of; `description` is anything JSON can hold."""

    description: Mapping[str, Any]
    training: TrainingItems
    ranker: KCCARanker


def write_model(folder: str | os.PathLike[str], model: PhotoModel, *, overwrite: bool) -> None:
    """Write a model as a folder, whole or not at all."""

    def write_parts(temporary: Path) -> None:
        model.ranker.save(temporary / _RANKER)
        model.training.save(temporary)

    write_folder(folder, _KIND, model.description, write_parts, overwrite=overwrite)


def read_model(folder: str | os.PathLike[str]) -> PhotoModel:
    """Read what `write_model` wrote; whatever is missing or damaged is named."""
    source = Path(folder)
    description = read_description(source, _KIND)
    with reading(source / DESCRIPTION):
        kernel = check_mapping("params", description["params"])["caption_kernel"]
        check_choice("caption_kernel", kernel, get_args(CaptionKernel))
    training = TrainingItems.load(source, kernel)
    ranker = KCCARanker.load(source / _RANKER)
    n_training = len(ranker.kcca_.x_scores_)
    if n_training != len(training):
        raise ValueError(
            f"{source} must hold the files of one model, got {len(training)} training photos "
            f"and a ranker of {n_training}"
        )
    return PhotoModel(description, training, ranker)
