"""Programs that run in a Python of their own."""

import os
import subprocess
import sys
import textwrap


def output_of(code: str, *args: object, timeout: float = 120.0, **environment: str) -> str:
    """Run a program that must end well, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(code), *map(str, args)],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=timeout,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
