"""What the README shows works as printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is not here")
def test_captions_are_ranked_as_printed(capsys):
    readme = README.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.S)
    assert found is not None
    exec(compile(found[1], "README.md", "exec"), {})
    assert capsys.readouterr().out == found[2]
