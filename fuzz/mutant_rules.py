"""What a small mistake looks like: rules that change one place of one line of code."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

_COMMON = (
    (r"(?<= )<(?= )", "<="),
    (r"(?<= )<=(?= )", "<"),
    (r"(?<= )>(?= )", ">="),
    (r"(?<= )>=(?= )", ">"),
    (r"(?<= )==(?= )", "!="),
    (r"(?<= )!=(?= )", "=="),
    (r"(?<= )\+(?= )", "-"),
    (r"(?<= )-(?= )", "+"),
    (r"(?<= )\*(?= )", "+"),
    (r"(?<= )\+=(?= )", "-="),
    (r"\bmin(?=\()", "max"),
    (r"\bmax(?=\()", "min"),
    (r"(?<![\w.])0(?![\w.])", "1"),
    (r"(?<![\w.])1(?![\w.])", "2"),
    (r"(?<![\w.])2(?![\w.])", "1"),
)
_CPP = (
    *_COMMON,
    (r"(?<= )&&(?= )", "||"),
    (r"(?<= )\|\|(?= )", "&&"),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"(?<=^  )if \(.*\) throw", "if (false) throw"),
    (r"\bif \((?!constexpr)", "if (!("),
    (r"\bcontinue;", "break;"),
)
_PYTHON = (
    *_COMMON,
    (r"\band\b", "or"),
    (r"\bor\b", "and"),
    (r"\bTrue\b", "False"),
    (r"\bFalse\b", "True"),
    (r"\bif (?=.*:$)", "if not "),
    (r"\bnot (?!None)", ""),
)


class Mutant(NamedTuple):
    """One place of a file that is changed.

    Attributes
    ----------
    path : str
        From the root of the project.
    line, column : int
        Where it starts; lines count from 1.
    before, after : str
    text : str
        The whole line, so that a ledger survives edits above it.
    """

    path: str
    line: int
    column: int
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        """What the ledger calls it: lines move, their text stays."""
        return (
            f"{self.path}: {self.text.strip()} [{self.column}: {self.before} -> {self.after}]"
        )

    def apply(self, source: str) -> str:
        """Return `source` with the mistake."""
        lines = source.splitlines(keepends=True)
        line = lines[self.line - 1]
        end = self.column + len(self.before)
        changed = line[: self.column] + self.after + line[end:]
        if self.after == "if (!(":  # the other parenthesis
            changed = _close(changed, self.column + len(self.after))
        lines[self.line - 1] = changed
        return "".join(lines)


def _close(line: str, start: int) -> str:
    """Put a second parenthesis where the one that is open at `start` is closed."""
    depth = 1
    for place in range(start, len(line)):
        depth += (line[place] == "(") - (line[place] == ")")
        if depth == 0:
            return line[:place] + ")" + line[place:]
    return line


def mutants_of(source: str, path: str) -> Iterator[Mutant]:
    """Every mutant of one file."""
    code = _python_code(source) if path.endswith(".py") else _cpp_code(source)
    rules = _PYTHON if path.endswith(".py") else _CPP
    lines = source.splitlines()
    for number, line in code.items():
        for pattern, after in rules:
            for match in re.finditer(pattern, line):
                yield Mutant(path, number, match.start(), match[0], after, lines[number - 1])


def _cpp_code(source: str) -> dict[int, str]:
    """Lines that are compiled without KERNELCORE_X86, with blanks for comments and strings."""
    code: dict[int, str] = {}
    left_out: list[bool] = []
    for number, line in enumerate(source.splitlines(), start=1):
        words = line.split()
        directive = words[0] if words else ""
        if directive.startswith("#if"):
            left_out.append("KERNELCORE_" in line or "__" in line)
        elif directive == "#elif" and left_out:
            left_out[-1] = "KERNELCORE_" in line
        elif directive == "#else" and left_out:
            left_out[-1] = not left_out[-1]
        elif directive == "#endif" and left_out:
            left_out.pop()
        declares = re.match(r"\s*(static_assert|template|using|typedef|KC_ASSERT)\b", line)
        if directive.startswith("#") or line.endswith("\\") or any(left_out) or declares:
            continue
        bare = re.sub(r'"(\\.|[^"])*"', lambda match: " " * len(match[0]), line)
        bare = re.sub(r"//.*", "", bare)
        if bare.strip():
            code[number] = bare
    return code


def _python_code(source: str) -> dict[int, str]:
    """Lines of code, with blanks for comments, strings and annotations."""
    lines = dict(enumerate(source.splitlines(), start=1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in {tokenize.COMMENT, tokenize.STRING}:
            continue
        (first, start), (last, end) = token.start, token.end
        for number in range(first, last + 1):
            line = lines[number]
            begin = start if number == first else 0
            stop = end if number == last else len(line)
            lines[number] = line[:begin] + " " * (stop - begin) + line[stop:]
    heads = re.compile(r"\s*(def|class|from|import|@)|.*->|\s*[\w]+: [^=]*,?$")
    return {
        number: line for number, line in lines.items() if line.strip() and not heads.match(line)
    }
