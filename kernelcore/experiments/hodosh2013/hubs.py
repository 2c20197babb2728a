"""What the correction for hubs is worth to each system."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kernelcore.evaluation import Result, Table
from kernelcore.evaluation.significance import fisher_randomization, holm
from kernelcore.experiments.corpus import Pool
from kernelcore.experiments.scores import hub_corrected_name
from kernelcore.experiments.sections import photo_recalls
from kernelcore.report import Section


def recalls_of_images(result: Result) -> npt.NDArray[np.float64]:
    """Mean recall of each image in percent, in a pool of one caption per image."""
    n = int(result.facts["n_images"])
    return photo_recalls(result, Pool(("",) * n, np.zeros(n, np.int64), np.arange(n)))


def hubs_section(results: Mapping[str, Result], *, n_threads: int | None) -> Section | None:
    """Test each system corrected for hubs against itself.

    Parameters
    ----------
    results : mapping of str to Result
        Of systems, and of the same corrected for hubs, by their names.
    n_threads : int or None

    Returns
    -------
    Section or None
        None if no system has a corrected result.
    """
    pairs = {
        name: (results[name], results[hub_corrected_name(name)])
        for name in results
        if hub_corrected_name(name) in results
    }
    if not pairs:
        return None
    recalls = {name: [recalls_of_images(one) for one in pair] for name, pair in pairs.items()}
    p_values = holm(
        [
            fisher_randomization(after, before, rng=0, n_threads=n_threads).p_value.item()
            for before, after in recalls.values()
        ]
    )
    rows = []
    for (name, (before, after)), p_value in zip(recalls.items(), p_values, strict=True):
        gain = after - before
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        rows.append(
            (
                name,
                f"{before.mean():.1f}",
                f"{after.mean():.1f}",
                f"{gain.mean():+.2f} ± {error:.2f}",
                f"{p_value:.2g}",
            )
        )
    columns = ("system", "as it is", "corrected", "gain ± standard error", "p")
    return Section(
        "Corrected for hubs",
        (
            "Some captions are near to very many images, and some images to very many "
            "captions. The correction takes twice the score less the mean of the candidate's "
            "30 highest scores with training images or training captions (cross-domain "
            "similarity local scaling). It is not in the paper. With kernel CCA each of the "
            "15 models is corrected before Borda's count; a training image's captions are one "
            "query. With nearest neighbours the scores themselves are corrected.",
            "The table has the mean of the six recalls in percent. Its test is Fisher's "
            "randomisation test of the mean recall of each image, with Holm's correction for "
            "the number of systems.",
        ),
        (Table(columns=columns, rows=tuple(rows)),),
    )
