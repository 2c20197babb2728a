"""The package as a whole: import time, configuration, version, optional packages."""

import importlib.metadata
import sys

import pytest
from programs import output_of
from refusals import refuses

import kernelcore
from kernelcore import _estimator, _extras, datasets, errors, images


def test_import_is_fast_and_light():
    code = (
        "import sys, time; start = time.perf_counter(); import numpy; "
        "middle = time.perf_counter(); import kernelcore; "
        "end = time.perf_counter(); print(end - start, end - middle); "
        "heavy = {'torch', 'numba', 'matplotlib', 'sklearn', 'scipy', 'cv2', 'spacy'}; "
        "print(*heavy.intersection(sys.modules))"
    )
    times, heavy = min((output_of(code).split("\n")[:2] for _ in range(3)), key=lambda r: r[0])
    whole, ours = map(float, times.split())
    assert heavy == ""
    assert ours < 0.1
    assert whole < 1.0  # NumPy's own share depends on the disk


def test_large_packages_are_loaded_by_those_who_use_them_and_missed_by_their_extra():
    code = (
        "import sys, kernelcore.cli.searching; assert 'scipy' not in sys.modules\n"
        "assert 'deep' in dir(kernelcore)\n"
        "import kernelcore.models, kernelcore.lexical, kernelcore.report, kernelcore.images\n"
        "import kernelcore.kernels; assert not {'torch', 'numba'} & set(sys.modules)\n"
        "sys.modules['torch'] = None\n"
        "try:\n    kernelcore.deep\n"
        "except kernelcore.errors.MissingExtraError as error:\n    print(error)"
    )
    said = output_of(code)
    assert "torch" in said
    assert 'pip install "kernelcore[deep]' in said


def test_version_is_the_distribution_s():
    try:
        installed = importlib.metadata.version("kernelcore")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("kernelcore runs from its source folder")
    assert installed == kernelcore.__version__


def test_show_config_names_everything_a_report_needs():
    config = kernelcore.show_config()
    assert config["instruction_set"] in config["instruction_sets"]
    assert config["n_threads"] >= 1
    assert config["compiler"]
    assert set(config["extras"]) >= {"opencv-python-headless", "spacy", "matplotlib"}


def test_subpackages_are_attributes_and_strangers_are_not():
    for name in kernelcore.__all__:
        assert getattr(kernelcore, name), name
    assert set(dir(kernelcore)) == set(kernelcore.__all__)
    refuses(AttributeError, "kernel", getattr, kernelcore, "kernel")


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch):
    known = set(importlib.metadata.metadata("kernelcore").get_all("Provides-Extra"))
    assert {extra for _, extra in _extras._EXTRAS.values()} <= known
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    said = refuses(errors.MissingExtraError, "matplotlib", _extras.require, "matplotlib")
    assert said.endswith('not installed: pip install "kernelcore[plot]"')


def test_a_broken_installation_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "numba").mkdir()
    (tmp_path / "numba" / "__init__.py").write_text("raise ImportError('libLLVM.so: no file')")
    for name in [name for name in sys.modules if name.partition(".")[0] == "numba"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    named = r"numba, .* fails to import: libLLVM\.so: no file"
    refuses(errors.MissingExtraError, named, _extras.require, "numba.core.dispatcher")


def test_errors_are_the_same_wherever_they_are_imported_from():
    assert errors.NotFittedError is _estimator.NotFittedError
    assert errors.MissingExtraError is _extras.MissingExtraError
    assert errors.DatasetWarning is datasets.DatasetWarning
    assert errors.UnreadableImageError is images.UnreadableImageError
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), Exception)
    refuses(AttributeError, "FittedError", getattr, errors, "FittedError")


def test_the_first_names_are_those_of_their_subpackages():
    for home, names in kernelcore._HOMES.items():
        module = importlib.import_module(f"kernelcore.{home}")
        for name in names.split():
            assert getattr(kernelcore, name) is getattr(module, name)
