"""Times of training steps of document linkers."""

import pytest

torch = pytest.importorskip("torch")

from kernelcore.datasets import Document  # noqa: E402
from kernelcore.deep import DocumentLinker  # noqa: E402
from kernelcore.experiments.hessel2019 import timing  # noqa: E402

FEATURES = {"dog.jpg": [1.0, 0.0], "cat.jpg": [0.0, 1.0]}
DOCUMENTS = [Document(str(i), ("a dog", "a cat"), tuple(FEATURES)) for i in range(9)]


def test_linkers_take_turns_and_every_step_holds_its_matching(monkeypatch):
    turns, shown = [], []
    time = timing._time

    def spy(objective, *rest):
        turns.append(objective.similarity)
        return time(objective, *rest)

    monkeypatch.setattr(timing, "_time", spy)
    linkers = {name: DocumentLinker(similarity=name, min_count=1) for name in ("DC", "AP")}
    times = timing.step_times(
        linkers, DOCUMENTS, FEATURES, n_steps=3, n_threads=1,
        progress=lambda done, total: shown.append((done, total)),
    )  # fmt: skip
    assert turns == ["DC", "AP"] * 4  # one step of each warms up
    assert shown == [(i, 4) for i in range(1, 5)]
    assert list(times) == ["DC", "AP"]
    assert all(0 < t.matching < t.step < 10 for t in times.values())
    with pytest.raises(ValueError, match="n_steps must be an integer >= 1"):
        timing.step_times(linkers, DOCUMENTS, FEATURES, n_steps=0)


def test_medians_are_reported(monkeypatch):
    seconds = iter([(99.0, 9.0), (3.0, 0.3), (1.0, 0.5), (8.0, 0.1)])
    monkeypatch.setattr(timing, "_time", lambda *_: next(seconds))
    times = timing.step_times(
        {"AP": DocumentLinker(min_count=1)}, DOCUMENTS, FEATURES, n_steps=3
    )
    assert times == {"AP": timing.StepTime(step=3.0, matching=0.3)}
