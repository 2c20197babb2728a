"""Options of commands, made of the parameters of functions and the fields of dataclasses.

The help of an option is the text of its parameter in the docstring. `Annotated` adds what a
type does not say, such as ``{"min": 1}``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

Count: TypeAlias = Annotated[int, {"min": 1}]
Threads: TypeAlias = Annotated[int | None, {"min": 1}]

_NOT_SHOWN = (inspect.Parameter.empty, None, "", False)


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

    @property
    def outside(self) -> Literal["refuse", "allow"]:
        """What happens to names and links that lead out of the folder."""
        return "allow" if self.allow_outside else "refuse"

    def check_unread(self, vectors: str | Path | None, *names: str) -> None:
        """Raise if an option about reading photos is given beside a file of their vectors."""
        if vectors is not None and Path(vectors).suffix.lower() == ".npy":
            for name in names:
                if getattr(self, name):
                    raise typer.BadParameter(
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


class LazyGroup(TyperGroup):
    """Group of commands that are imported when they are called.

    Attributes
    ----------
    summaries : mapping of str to str
        One line about each command, by its name.
    """

    summaries: ClassVar[Mapping[str, str]]

    def load(self, name: str) -> TyperCommand:
        """Import a command."""
        raise NotImplementedError

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(self.summaries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return what the list of commands prints about one, without its options."""
        about = self.summaries.get(cmd_name)
        return None if about is None else TyperCommand(cmd_name, help=about)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is called."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, self.load(str(name)), rest


def command_of(function: Callable[..., None], about: str) -> Any:
    """Make a command of a function.

    Parameters that may be given by position become arguments, keyword-only ones become options.
    A parameter whose type is a dataclass stands for one option for each field.

    Parameters
    ----------
    function : callable
        What the command does.
    about : str
        Its help.

    Returns
    -------
    TyperCommand
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    options = []
    for name, own in inspect.signature(function).parameters.items():
        if name in groups:
            options += options_of(groups[name], inspect.signature(groups[name]).parameters)
        else:
            options += options_of(function, {name: own})

    def run(**values: Any) -> None:
        for name, kind in groups.items():
            fields = inspect.signature(kind).parameters
            values[name] = kind(**{field: values.pop(field) for field in fields})
        function(**values)

    return command_with(run, options, about)


def command_with(
    run: Callable[..., None], options: Sequence[inspect.Parameter], about: str
) -> Any:
    """Make a command that calls `run` with the values of options; `about` is its help."""
    vars(run)["__signature__"] = inspect.Signature(options)
    run.__annotations__ = {own.name: own.annotation for own in options}
    app = typer.Typer(add_completion=False)
    is_needed = any(own.default is own.empty for own in options)
    app.command(help=about, no_args_is_help=is_needed)(run)
    return typer.main.get_command(app)


def options_of(
    owner: Any,
    parameters: Mapping[str, inspect.Parameter],
    hints: Mapping[str, Any] | None = None,
) -> list[inspect.Parameter]:
    """Describe parameters of a function, or fields of a dataclass, as arguments and options.

    Parameters
    ----------
    owner : function or type
        Its docstring has the help.
    parameters : mapping of str to Parameter
    hints : mapping of str to Any, optional
        Their types; the default are those of `owner`.

    Returns
    -------
    list of Parameter
        Keyword-only, with the annotations of typer.
    """
    hints = get_type_hints(owner, include_extras=True) if hints is None else hints
    texts = parameter_texts(owner)
    found = []
    for name, own in parameters.items():
        kind, settings = hints[name], {}
        if get_origin(kind) is Annotated:
            kind, settings = kind.__origin__, dict(kind.__metadata__[0])
        is_argument = own.kind is own.POSITIONAL_OR_KEYWORD
        settings |= {"help": texts.get(name), "show_default": own.default not in _NOT_SHOWN}
        info = (
            typer.Argument(**settings)
            if is_argument
            else typer.Option(settings.pop("name", flag(name)), **settings)
        )
        found.append(own.replace(kind=own.KEYWORD_ONLY, annotation=Annotated[kind, info]))
    return found


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
