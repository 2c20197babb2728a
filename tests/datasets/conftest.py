"""The test photos of a corpus."""

import pytest

from kernelcore.datasets import load_flickr


@pytest.fixture(scope="module")
def flickr8k(data_root):
    flickr = load_flickr(data_root / "flickr8k", images=data_root / "flickr8k" / "images")
    return flickr.subset(flickr.split("test"))
