"""A photo ranker on disk: a folder of safetensors and JSON files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args

import kernelcore
from kernelcore._reading import check_mapping, reading
from kernelcore._replacing import recover_folder, replacing_folder
from kernelcore._validation import check_choice
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.training_items import CaptionKernel, TrainingItems, read_json

_KIND = "photo ranker"
DESCRIPTION = "model.json"
_RANKER = "ranker.safetensors"


class PhotoModel(NamedTuple):
    """What a fitted photo ranker consists of; `description` is anything JSON can hold."""

    description: Mapping[str, Any]
    training: TrainingItems
    ranker: KCCARanker


def write_model(folder: str | os.PathLike[str], model: PhotoModel, *, overwrite: bool) -> None:
    """Write a model as a folder, whole or not at all."""
    check_model_folder(folder, overwrite=overwrite)
    about = {"kind": _KIND, "version": kernelcore.__version__, **model.description}
    with replacing_folder(folder) as temporary:
        (temporary / DESCRIPTION).write_text(json.dumps(about, indent=1), encoding="utf-8")
        model.ranker.save(temporary / _RANKER)
        model.training.save(temporary)


def read_model(folder: str | os.PathLike[str]) -> PhotoModel:
    """Read what `write_model` wrote; whatever is missing or damaged is named."""
    source = Path(folder)
    recover_folder(source)
    if not source.is_dir():
        raise FileNotFoundError(f"there is no folder {source} to load a model from")
    if not (source / DESCRIPTION).is_file():
        raise ValueError(f"{source} must hold a model, and it has no {DESCRIPTION}")
    description = read_json(source / DESCRIPTION)
    if description.get("kind") != _KIND:
        raise ValueError(f"{source / DESCRIPTION} must describe a {_KIND}, and it does not")
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


def check_model_folder(folder: str | os.PathLike[str], *, overwrite: bool) -> None:
    """Raise unless a model may be written into this folder."""
    target = Path(folder)
    recover_folder(target)
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not (target / DESCRIPTION).is_file():
        raise FileExistsError(f"{target} must be a new or empty folder, and it is not")
    if not overwrite:
        raise FileExistsError(f"{target} holds a model already; overwrite would replace it")
