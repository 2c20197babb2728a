"""Base classes of estimators and transformers, without importing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from kernelcore._check import Array, as_array, as_real_array, check_finite
from kernelcore.errors import NotFittedError

_Self = TypeVar("_Self", bound="Estimator")


class Estimator:
    """Parameters of an estimator: the arguments of its constructor, stored under their names.

    A constructor stores its arguments as they are and checks nothing; `fit` checks them. So
    `sklearn.base.clone` and scikit-learn's searches work on every subclass.
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        return {p.name: p.default for p in parameters if p.kind in named}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; with `deep` also of nested estimators, as ``a__b``."""
        params = {name: getattr(self, name) for name in self._defaults()}
        if deep:
            for name, value in list(params.items()):
                if isinstance(value, Estimator):
                    nested = value.get_params(deep=True)
                    params.update({f"{name}__{key}": part for key, part in nested.items()})
        return params

    def set_params(self: _Self, **params: Any) -> _Self:
        """Set parameters by name (``a__b`` for nested estimators); return self."""
        names = self._defaults()
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in names:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has "
                    + ", ".join(map(repr, names))
                )
            if rest:
                getattr(self, name).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    @classmethod
    def from_json(cls: type[_Self], params: Any) -> _Self:
        """Make an estimator from the output of `params_to_json`, with all parameters checked.

        Missing ones have their defaults.
        """
        if not isinstance(params, dict):
            raise ValueError(f"params must be a JSON object, got {params!r:.80}")
        values = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in params.items()
        }
        estimator = cls().set_params(**values)
        estimator._check_params()
        return estimator

    def _check_params(self) -> Any:
        """Raise unless all parameters are valid."""

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that `fit` takes no single matrix; subclasses may say otherwise."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            input_tags=InputTags(two_d_array=False),
        )

    def __repr__(self) -> str:
        changed = (
            f"{name}={getattr(self, name)!r}"
            for name, default in self._defaults().items()
            if getattr(self, name) is not default
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def _check_fitted(self, attribute: str) -> None:
        if not hasattr(self, attribute):
            raise NotFittedError(f"this {type(self).__name__} must be fitted first: call fit")


def params_to_json(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters as plain Python values: numbers, strings, None and lists of them."""

    def plain(value: Any) -> Any:
        if isinstance(value, (list, tuple, range)):
            return [plain(part) for part in value]
        return value.tolist() if hasattr(value, "tolist") else value

    return {name: plain(value) for name, value in params.items()}


class ComplexDataError(TypeError, ValueError):
    """Complex numbers: a TypeError here, a ValueError for scikit-learn."""


class Transformer(Estimator):
    """Estimator that transforms a matrix with one row per sample into another.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns in `fit`.
    """

    n_features_in_: int

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that `fit` takes a matrix, and that float32 stays float32."""
        from sklearn.utils import TransformerTags

        tags = super().__sklearn_tags__()
        tags.transformer_tags = TransformerTags(preserves_dtype=["float64", "float32"])
        tags.input_tags.two_d_array = True
        return tags

    def _take_columns(self, items: Any) -> None:
        """Store the number of columns in `fit`, if the items have any."""
        self.__dict__.pop("n_features_in_", None)
        if len(getattr(items, "shape", ())) == 2:
            self.n_features_in_ = items.shape[1]

    def _check_columns(self, name: str, items: Any, rule: str) -> None:
        """Raise unless there are as many columns as in `fit`, if it had columns."""
        shape: tuple[int, ...] = getattr(items, "shape", ())
        n = getattr(self, "n_features_in_", None)
        if n is not None and len(shape) == 2 and shape[1] != n:
            raise ValueError(
                f"{name} must have {rule} ({n}), got shape {shape}: X has {shape[1]} "
                f"features, but {type(self).__name__} is expecting {n} features as input"
            )


def as_samples(name: str, value: Any) -> Array:
    """Return a finite float matrix of at least one column, one row per sample.

    An array of objects is read as the lists of numbers that it holds. Errors say what those of
    scikit-learn say, which code over many estimators may look for.
    """
    if hasattr(value, "tocsr"):
        raise TypeError(
            f"{name} must be a dense 2-D array, got type {type(value).__name__}, which is "
            "sparse: its method toarray makes it dense"
        )
    array = as_array(name, value, ndim=2)
    if array.dtype.kind == "O":
        array = as_array(name, array.tolist(), ndim=2)
    if array.dtype.kind == "O":
        try:
            for element in array.flat:
                float(element)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{name} must hold real numbers: {error}") from None
    if array.dtype.kind == "c":
        raise ComplexDataError(
            f"{name} must hold real numbers, got dtype {array.dtype}: "
            "Complex data not supported"
        )
    if array.ndim == 1:
        raise ValueError(
            f"{name} must be a 2-D array, got shape {array.shape}. Reshape your data: one "
            "sample is array.reshape(1, -1)"
        )
    matrix = as_real_array(name, array, ndim=2)
    if len(matrix) and not matrix.shape[1]:
        raise ValueError(
            f"{name} must have columns, got 0 feature(s) (shape={matrix.shape}) while a "
            "minimum of 1 is required."
        )
    try:
        return check_finite(name, matrix)
    except ValueError as error:
        raise ValueError(f"{error}; NaN and infinity are refused") from None
