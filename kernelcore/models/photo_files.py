"""A photo ranker on disk: a folder of safetensors and JSON files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from kernelcore._reading import check_mapping, check_tensor, reading
from kernelcore._validation import check_choice, check_integer
from kernelcore.kernels import power
from kernelcore.models.feature_kernel import SCALINGS
from kernelcore.models.kcca_grid import KCCASetting
from kernelcore.models.kcca_ranker import KCCARanker
from kernelcore.models.model_folder import DESCRIPTION, read_description, write_folder
from kernelcore.models.photo_inputs import Extractor
from kernelcore.models.training_captions import CaptionKernel
from kernelcore.models.training_items import TrainingItems

_OF_0_1: Mapping[str, Any] = {
    "scaling": None,
    "hub_neighbors": 0,
    "dev_chance": [[np.nan] * 3] * 2,
    "n_dev": (0, 0),
}

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

    `extractors` replace those that were not saved, one for each view without its own.
    """
    description = read_description(folder, _KIND)
    source = Path(folder)
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


def fitted_to_json(ranker: Any) -> dict[str, Any]:
    """Return the settings that a photo ranker chose, and what they reached, as JSON."""
    return {
        "image_power": ranker.image_power_,
        "scaling": ranker.scaling_,
        "setting": ranker.setting_._asdict(),
        "hub_neighbors": ranker.hub_neighbors_,
        "dev_recalls": ranker.dev_recalls_.tolist(),
        "dev_chance": ranker.dev_chance_.tolist(),
        "n_dev": list(ranker.n_dev_),
    }


def fitted_attributes(
    description: Mapping[str, Any], training: TrainingItems
) -> dict[str, Any]:
    """Return the attributes that `fitted_to_json` told, checked, by their names."""
    # Version 0.1 knew neither vectors nor hubs.
    known = description if "photos" in description else _OF_0_1
    exponent = description["image_power"]
    power(np.ones((1, 1)), exponent)  # raises if that is no exponent
    if training.scalings != (None,):
        check_choice("scaling", known["scaling"], SCALINGS)
    recalls = np.array(description["dev_recalls"], np.float64)
    chance = np.array(known["dev_chance"], np.float64)
    if known is description:
        check_tensor("dev_chance", chance, (2, 3))
    n_photos, n_captions = known["n_dev"]
    return {
        "image_power_": exponent,
        "scaling_": known["scaling"],
        "setting_": KCCASetting.from_json(description["setting"]),
        "hub_neighbors_": check_integer("hub_neighbors", known["hub_neighbors"], minimum=0),
        "dev_recalls_": check_tensor("dev_recalls", recalls, (2, 3)),
        "dev_chance_": chance,
        "n_dev_": (
            check_integer("n_dev", n_photos, minimum=0),
            check_integer("n_dev", n_captions, minimum=0),
        ),
    }
