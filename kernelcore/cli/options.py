"""Options of commands, made of the parameters of functions and the fields of dataclasses.

The help of an option is the text of its parameter in the docstring. `Annotated` adds what a
type does not say, such as ``{"min": 1}``.
"""

from __future__ import annotations

import inspect
import os
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import click

from kernelcore.errors import UnreadableImagesError

Count: TypeAlias = Annotated[int, {"min": 1}]
Threads: TypeAlias = Annotated[int | None, {"min": 1}]

_NOT_SHOWN = (inspect.Parameter.empty, None, "", False)
# Types of options by the types of parameters; the first of those of a union.
_KINDS: dict[Any, Any] = {
    os.PathLike[str]: Path,
    abc.Sequence[str]: list[str],
    **{kind: kind for kind in (Path, list[Path], list[str], int, float, bool, str)},
}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How photos are read.

    Parameters
    ----------
    cache : path, optional
        Folder that keeps what takes long to compute, such as the features of each photo, so
        that a command that was stopped can resume.
    skip_damaged : bool
        Leave out photos that cannot be read.
    allow_outside : bool
        Let names and links lead out of the folder of photos.
    threads : int, optional
        Threads to use. Default: all cores.
    """

    cache: Path | None = None
    skip_damaged: bool = False
    allow_outside: bool = False
    threads: Threads = None

    @property
    def on_error(self) -> Literal["raise", "skip"]:
        """What happens to photos that cannot be read."""
        return "skip" if self.skip_damaged else "raise"

    @contextmanager
    def hinting(self) -> Iterator[None]:
        """Name the option that helps where some photos cannot be read."""
        try:
            yield
        except UnreadableImagesError as error:
            if not self.skip_damaged and len(error.failures) < error.n_images:
                error.add_note("  --skip-damaged leaves out what cannot be read")
            raise

    @property
    def outside(self) -> Literal["refuse", "allow"]:
        """What happens to names and links that lead out of the folder."""
        return "allow" if self.allow_outside else "refuse"

    def check_unread(self, vectors: str | Path | None, *names: str) -> None:
        """Raise if an option about reading photos is given beside a file of their vectors."""
        if vectors is not None and Path(vectors).suffix.lower() == ".npy":
            for name in names:
                if getattr(self, name):
                    raise click.BadParameter(
                        f"{flag(name)} must be left out where --features is a file of "
                        "vectors: no photo is read"
                    )


@dataclass(frozen=True, kw_only=True)
class PhotoOptions(Reading):
    """Photos of a folder, or their vectors.

    Parameters
    ----------
    features : path, optional
        A .npy file of vectors of the photos, for a model that was trained with one.
    """

    features: Path | None = None


class LazyGroup(click.Group):
    """Group of commands that are imported when they are called.

    Attributes
    ----------
    summaries : mapping of str to str
        One line about each command, by its name.
    """

    summaries: ClassVar[Mapping[str, str]]

    def load(self, name: str) -> click.Command:
        """Import a command."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.summaries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what the list of commands prints about one, without its options."""
        about = self.summaries.get(cmd_name)
        return None if about is None else click.Command(cmd_name, short_help=about)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, self.load(str(name)), rest


def command_of(
    function: Callable[..., None],
    about: str,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> click.Command:
    """Make a command of a function.

    Parameters that may be given by position become arguments, keyword-only ones become options.
    A parameter whose type is a dataclass stands for one option for each field. An error that
    begins with the name of a parameter begins with that of its option instead.

    Parameters
    ----------
    function : callable
        What the command does.
    about : str
        Its help.
    settings : mapping, optional
        What types do not say, by the name of the parameter or field; see `options_of`.

    Returns
    -------
    Command
    """
    hints: dict[str, Any] = get_type_hints(function)
    groups = {name: hints[name] for name in hints if is_dataclass(hints[name])}

    def run(**values: Any) -> None:
        for name, kind in groups.items():
            fields = inspect.signature(kind).parameters.keys() & values.keys()
            values[name] = kind(**{field: values.pop(field) for field in fields})
        try:
            function(**values)
        except (OSError, TypeError, ValueError) as error:
            name, _, rule = str(error).partition(" ")
            if name in options and not hasattr(error, "option"):  # set by given_as
                error.args = (f"{options[name]} {rule}",)
            raise

    params = options_of(function, settings or {})
    options = {own.name: own.opts[0] for own in params if isinstance(own, click.Option)}
    options |= {f"n_{name}": option for name, option in options.items()}
    has_required = any(param.required for param in params)
    return click.Command(
        None, callback=run, params=params, help=about, no_args_is_help=has_required
    )


def options_of(owner: Any, settings: Mapping[str, Mapping[str, Any]]) -> list[click.Parameter]:
    """Make arguments and options of the parameters of a function or the fields of a dataclass.

    Parameters
    ----------
    owner : function or type
        Its docstring has the help.
    settings : mapping of str to mapping
        Arguments of `click.Option` by the name of the parameter, beside those of `Annotated`;
        ``name`` is an option that is not called like its parameter, ``min`` and ``max`` bound
        a number.

    Returns
    -------
    list of Parameter
        What no option can set is left out.
    """
    hints, texts = get_type_hints(owner, include_extras=True), parameter_texts(owner)
    found: list[click.Parameter] = []
    for name, own in inspect.signature(owner).parameters.items():
        hint, more = hints[name], dict(settings.get(name, {}))
        if get_origin(hint) is Annotated:
            hint, more = hint.__origin__, dict(hint.__metadata__[0])
        if is_dataclass(hint) and own.default is own.empty:
            found += options_of(hint, settings)
        elif (kind := option_type(hint)) is not None:
            found.append(_option(own, kind, help=texts.get(name), **more))
    return found


def _option(own: inspect.Parameter, kind: Any, **more: Any) -> click.Parameter:
    """Make the option or, of what may be given by position, the argument of a parameter."""
    is_list = get_origin(kind) is list
    (kind,) = get_args(kind) if is_list else (kind,)
    bounds = {name: more.pop(name) for name in ("min", "max") if name in more}
    if bounds:
        more["type"] = {int: click.IntRange, float: click.FloatRange}[kind](**bounds)
    elif kind is Path:
        more["type"] = click.Path(path_type=Path, readable=False)
    else:
        more["type"] = click.Choice(get_args(kind)) if get_origin(kind) is Literal else kind
    if is_list:
        more["callback"] = _list_of
    more |= {"required": True} if own.default is own.empty else {"default": own.default}
    if own.kind is own.POSITIONAL_OR_KEYWORD:
        return click.Argument([own.name], nargs=-1 if is_list else 1, **more)
    names = [more.pop("name", flag(own.name)), own.name]
    is_shown = own.default not in _NOT_SHOWN
    return click.Option(
        names, is_flag=kind is bool, multiple=is_list, show_default=is_shown, **more
    )


def _list_of(_: click.Context, __: click.Parameter, values: Any) -> list[Any] | None:
    """Return what an option that may be repeated got; None where it was not given."""
    return list(values or ()) or None


def option_type(hint: Any) -> Any:
    """Return the type of the option that sets a value; None for what no option can set."""
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if any(get_origin(part) is abc.Callable for part in parts):
        return None
    for form, kind in _KINDS.items():
        if form in parts:
            return kind
    return next((part for part in parts if get_origin(part) is Literal), None)


def parameter_texts(owner: Any) -> dict[str, str]:
    """Return the text of each parameter in a numpydoc docstring, also of base classes."""
    texts: dict[str, str] = {}
    for part in reversed(getattr(owner, "__mro__", (owner,))):
        docstring = inspect.cleandoc(part.__doc__ or "")
        section = docstring.partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        names: list[str] = []
        for line in section.splitlines():
            if line.startswith(" "):
                for name in names:
                    texts[name] = f"{texts[name]} {line.strip()}".strip().replace("`", "")
            else:
                names = line.split(" : ")[0].split(", ")
                texts.update(dict.fromkeys(names, ""))
    return texts


def flag(name: str) -> str:
    """Return the option of a parameter.

    Examples
    --------
    >>> from kernelcore.cli.options import flag
    >>> flag("skip_damaged"), flag("k")
    ('--skip-damaged', '-k')
    """
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"
