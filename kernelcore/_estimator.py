"""Base class of estimators: parameters, clone, errors; without importing scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from kernelcore.errors import NotFittedError

__all__ = ["Estimator", "NotFittedError", "params_from_json", "params_to_json"]

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
        estimator = cls().set_params(**params_from_json(params))
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


def params_from_json(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters for a constructor, from the output of `params_to_json`."""
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in params.items()
    }
