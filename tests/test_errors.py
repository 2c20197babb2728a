"""Errors that callers catch by name."""

import pytest

from kernelcore import _estimator, _extras, datasets, errors, images


def test_errors_are_the_same_wherever_they_are_imported_from():
    assert errors.NotFittedError is _estimator.NotFittedError
    assert errors.MissingExtraError is _extras.MissingExtraError
    assert errors.DatasetWarning is datasets.DatasetWarning
    assert errors.UnreadableImageError is images.UnreadableImageError
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), Exception)
    with pytest.raises(AttributeError, match="no attribute 'FittedError'"):
        _ = errors.FittedError
