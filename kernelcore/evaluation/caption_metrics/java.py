"""METEOR and SPICE: Java programs that pycocoevalcap brings."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kernelcore._extras import require
from kernelcore.errors import MissingExtraError
from kernelcore.evaluation.caption_metrics._corpus import (
    Caption,
    CaptionScores,
    References,
    as_texts,
)

_MOST_COMPLAINTS = 500  # characters of them in an error message
_SECONDS = 36_000.0  # that a run of a program may take

_METEOR = ("-Xmx2G", "-jar", "meteor-1.5.jar", "-", "-", "-stdio", "-l", "en", "-norm")
_SPICE = ("-Xmx8G", "-jar", "spice-1.0.jar")
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
    RuntimeError
        If the program fails or answers with anything but scores.
    TimeoutError
        If it does not answer within ten hours.

    References
    ----------
    .. [1] M. Denkowski and A. Lavie, "Meteor universal: language specific translation
       evaluation for any target language", WMT 2014.
    """
    texts, groups = as_texts(candidates, references)
    folder = _folder_with_java("METEOR", "pycocoevalcap.meteor.meteor")
    # bars divide the fields of what the program reads, the candidate comes last
    questions = [
        _fields("SCORE", *map(_without_bars, (*group, text)))
        for text, group in zip(texts, groups, strict=True)
    ]
    counts = _run("METEOR", _METEOR, folder, questions)
    answers = _run("METEOR", _METEOR, folder, [_fields("EVAL", *counts)])
    try:
        *scores, score = map(float, answers)
    except ValueError as error:
        raise RuntimeError(f"METEOR must answer with scores: {error}") from None
    if len(scores) != len(texts):
        raise RuntimeError(
            f"METEOR must answer with {len(texts)} scores, got {len(scores)}: {counts[:1]}"
        )
    return CaptionScores(score, np.array(scores, dtype=np.float64))


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
    RuntimeError
        If the program fails or answers with anything but scores.
    TimeoutError
        If it does not answer within ten hours.

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
    home = _folder_with_java("SPICE", "pycocoevalcap.spice.spice")
    missing = [name for name in _SPICE_MODELS if not (home / "lib" / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"SPICE needs {' and '.join(missing)} in {home / 'lib'}: run get_stanford_models() "
            "of pycocoevalcap.spice.get_stanford_models once, which downloads them"
        )
    questions = [
        {"image_id": i, "test": text, "refs": group}
        for i, (text, group) in enumerate(zip(texts, groups, strict=True))
    ]
    cache = home / "cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder) / "captions.json", Path(folder) / "scores.json"
        asked.write_text(json.dumps(questions), encoding="utf-8")
        files = (str(asked), "-cache", str(cache), "-out", str(told), "-subset", "-silent")
        _run("SPICE", (*_SPICE, *files), home)
        try:
            items = json.loads(told.read_text(encoding="utf-8"))
            found = {item["image_id"]: item["scores"]["All"]["f"] for item in items}
            scores = np.array([found[i] for i in range(len(texts))], np.float64)  # NaN for null
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RuntimeError(f"SPICE must write scores: {error!r}") from None
    return CaptionScores(float(scores.mean()), scores)


def _run(
    metric: str, arguments: Sequence[str], folder: Path, questions: Sequence[str] = ()
) -> list[str]:
    """Run Java in the folder, with these lines as its input, and return those it prints."""
    text = "".join(f"{question}\n" for question in questions)
    try:
        done = subprocess.run(
            ["java", *arguments],
            cwd=folder,
            input=text.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{metric} needs an answer of java within {_SECONDS:g} s") from None
    except subprocess.CalledProcessError as error:
        complaints = error.stderr.decode(errors="replace").strip()[-_MOST_COMPLAINTS:]
        raise RuntimeError(
            f"{metric} needs java, which ended with status {error.returncode}: {complaints}"
        ) from None
    return done.stdout.decode(errors="replace").split("\n")[:-1]


def _folder_with_java(metric: str, module: str) -> Path:
    """Return the folder of the program that the module runs, if it can run."""
    if shutil.which("java") is None:
        raise MissingExtraError(f"{metric} needs Java, and there is no command java")
    return Path(str(require(module).__file__)).parent


def _fields(*fields: str) -> str:
    return " ||| ".join(fields)


def _without_bars(text: str) -> str:
    return " ".join(text.replace("|||", " ").split())
