"""Tools that read hints at run time can read those of `kernelcore.evaluation`."""

import inspect
import typing

import pytest

from kernelcore import evaluation
from kernelcore.evaluation.result import Labels

LABELLED = ("evaluate", "evaluate_links", "evaluate_relevance", "evaluate_selections")
FUNCTIONS = sorted(
    name for name in evaluation.__all__ if inspect.isfunction(getattr(evaluation, name))
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_hints_of_functions_resolve(name):
    assert "return" in typing.get_type_hints(getattr(evaluation, name))


@pytest.mark.parametrize("name", LABELLED)
def test_hints_name_the_labels(name):
    hint = typing.get_type_hints(getattr(evaluation, name))["labels"]
    assert hint == typing.Unpack[Labels]
