"""What the README shows works as printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.skipif(not README.is_file(), reason="the README is not here")
def test_the_eight_lines_of_python_run():
    pytest.importorskip("cv2")
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S)
    assert code is not None
    lines = code.group(1).strip().splitlines()
    assert sum(bool(line) for line in lines) <= 8
    small = code.group(1).replace("make_scenes(500", "make_scenes(100")
    assert small != code.group(1)
    exec(compile(small, "README.md", "exec"), {})
