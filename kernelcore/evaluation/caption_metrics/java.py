"""METEOR and SPICE, two Java programs that pycocoevalcap brings and runs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from kernelcore._extras import MissingExtraError, require
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    CaptionScores,
    References,
    as_texts,
)

_SPICE_MODELS = ("stanford-corenlp-3.6.0.jar", "stanford-corenlp-3.6.0-models.jar")


def meteor(candidates: Sequence[Caption], references: References) -> CaptionScores:
    """METEOR 1.5, as the COCO caption evaluation runs it.

    Aligns words that are equal, have equal stems, are synonyms or paraphrases.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.

    Returns
    -------
    CaptionScores
        In [0, 1]. The corpus score is computed from the counts of all captions and is not
        the mean of the captions'.

    Raises
    ------
    MissingExtraError
        If Java or pycocoevalcap is not installed.
    TypeError
        If captions are not texts or sequences of tokens.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    References
    ----------
    .. [1] M. Denkowski and A. Lavie, "Meteor universal: language specific translation
       evaluation for any target language", WMT 2014.
    """
    texts, groups = as_texts(candidates, references)
    scorer = _require_with_java("METEOR", "pycocoevalcap.meteor.meteor").Meteor()
    try:
        # bars divide the fields of what the program reads
        score, scores = scorer.compute_score(
            {i: [_without_bars(text) for text in group] for i, group in enumerate(groups)},
            {i: [_without_bars(text)] for i, text in enumerate(texts)},
        )
    finally:
        _close(scorer.meteor_p)
    return CaptionScores(float(score), np.array(scores, dtype=np.float64))


def spice(candidates: Sequence[Caption], references: References) -> CaptionScores:
    """SPICE: the F1 of the objects, attributes and relations that captions name.

    Parameters
    ----------
    candidates : sequence of captions, length n_captions
        Each is a list of tokens, or a text that is split at white space.
    references : sequence of sequences of captions, length n_captions
        The reference captions of each candidate, at least one.

    Returns
    -------
    CaptionScores
        In [0, 1]. The corpus score is the mean of the captions'.

    Raises
    ------
    MissingExtraError
        If Java or pycocoevalcap is not installed.
    FileNotFoundError
        If the models of Stanford CoreNLP are not there: this package downloads nothing.
    TypeError
        If captions are not texts or sequences of tokens.
    ValueError
        If the numbers of candidates and sets of references differ, a set is empty, or there
        is no candidate.

    Notes
    -----
    The program was written for Java 8, takes up to 8 GB and keeps a cache inside the folder
    of pycocoevalcap.

    References
    ----------
    .. [1] P. Anderson, B. Fernando, M. Johnson and S. Gould, "SPICE: semantic propositional
       image caption evaluation", ECCV 2016.
    """
    texts, groups = as_texts(candidates, references)
    module = _require_with_java("SPICE", "pycocoevalcap.spice.spice")
    folder = Path(str(module.__file__)).parent / "lib"
    missing = [name for name in _SPICE_MODELS if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"SPICE needs {' and '.join(missing)} in {folder}: run get_stanford_models() of "
            "pycocoevalcap.spice.get_stanford_models once, which downloads them"
        )
    score, parts = module.Spice().compute_score(
        dict(enumerate(groups)), {i: [text] for i, text in enumerate(texts)}
    )
    scores = np.array([part["All"]["f"] for part in parts], dtype=np.float64)
    return CaptionScores(float(score), scores)


def _require_with_java(metric: str, module: str) -> ModuleType:
    found, missing = None, []
    if shutil.which("java") is None:
        missing.append("Java (no command java)")
    try:
        found = require(module)
    except MissingExtraError as error:
        missing.append(str(error))
    if missing or found is None:
        raise MissingExtraError(
            f"{metric} needs Java and the package pycocoevalcap; missing: {'; '.join(missing)}"
        )
    return found


def _without_bars(text: str) -> str:
    return " ".join(text.replace("|||", " ").split())


def _close(process: Any) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()
    process.kill()
    process.wait()
