"""Every example of the gallery runs."""

import pytest
from pages import ROOT

from kernelcore.errors import MissingExtraError

EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs(example, tmp_path, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    pyplot.switch_backend("agg")
    source = example.read_text("utf-8")
    try:
        exec(compile(source, example.name, "exec"), {"__name__": "__main__"})
    except (MissingExtraError, ModuleNotFoundError) as error:
        if str(error.name).startswith("kernelcore"):
            raise
        pytest.skip(str(error))
    finally:
        pyplot.close("all")
