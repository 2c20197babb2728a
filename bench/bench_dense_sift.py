"""Dense SIFT against OpenCV's, on the same points of the same image and one thread each.

OpenCV visits the pixels around every point: its time grows with the number of points and
the area of a descriptor, ours hardly with either. Its keypoints of size s have bins of 1.5 s
pixels: 12 where the size is the step of 8, 24 where it is twice that.
"""

import numpy as np
import pytest
from results import target

from kernelcore._threads import one_blas_thread
from kernelcore.images import dense_sift

cv2 = pytest.importorskip("cv2", reason="the points are OpenCV's: extra images")

# Height, width, step, bin size; the first is what `VisualWords` does.
CASES = [
    (224, 224, 2, 3.0),
    *((375, 500, 8, bin_size) for bin_size in (3.0, 8.0, 12.0, 24.0)),
]


def image(height, width):
    noise = np.random.default_rng(0).integers(0, 256, (height, width), np.uint8)
    return cv2.GaussianBlur(noise, (0, 0), 2.0)


def opencv_on_the_grid(grey, features, bin_size):
    sift = cv2.SIFT_create(sigma=0.5)
    keypoints = [
        cv2.KeyPoint(float(x), float(y), 2 * bin_size / 3, 0.0, 0.0, 0)
        for y in features.y
        for x in features.x
    ]
    return lambda: sift.compute(grey, keypoints)[1]


@pytest.mark.ways("kernelcore", "opencv")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_dense_sift(measure, case):
    height, width, step, bin_size = case
    grey = image(height, width)
    features = dense_sift(grey, step=step, bin_size=bin_size)
    opencv = opencv_on_the_grid(grey, features, bin_size)
    expected = opencv()

    def ours():
        with one_blas_thread():
            return dense_sift(grey, step=step, bin_size=bin_size)

    def check(descriptors):
        assert np.abs(descriptors - expected).max() <= 1

    measure(
        f"dense SIFT, step {step}, bins of {bin_size:g}",
        {"kernelcore": ours, "opencv": opencv},
        read={"kernelcore": lambda found: np.minimum(np.rint(512 * found.points), 255)},
        check=check,
        shape=f"{width} x {height} pixels",
        targets=[
            target(
                "speed >= 10 x opencv",
                reason="most of the time are the orientations of all pixels, whatever the grid",
            )
        ]
        if bin_size == 12.0
        else [],
    )
