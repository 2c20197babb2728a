"""Similarities of sets and losses as torch functions: values and gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from refusals import refuses  # noqa: E402

from kernelcore.deep import hinge_loss, set_similarities  # noqa: E402
from kernelcore.matching import set_similarity  # noqa: E402

ROWS, COLS = [0, 3, 4, 8], [0, 2, 7]
METHODS = [
    ("DC", None),
    ("TK", None),
    ("TK", "half"),
    ("TK", 2),
    ("AP", None),
    ("AP", "half"),
    ("AP", 1),
]


def matrix(seed=0, dtype=torch.float64, shape=(8, 7)):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, generator=generator, dtype=dtype) * 2 - 1


@pytest.mark.parametrize(("method", "k"), METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_those_of_the_matching(method, k, dtype):
    S = matrix(dtype=dtype)
    values = set_similarities(S, ROWS, COLS, method=method, k=k)
    expected = set_similarity(S.numpy(), ROWS, COLS, method=method, k=k)
    assert values.dtype == dtype
    np.testing.assert_array_equal(values.numpy(), expected)


@pytest.mark.parametrize(("method", "k"), METHODS)
def test_gradients_agree_with_finite_differences(method, k):
    S = matrix(1).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda x: set_similarities(x, ROWS, COLS, method=method, k=k), (S,)
    )


@pytest.mark.parametrize(("method", "k"), [("DC", None), ("AP", "half")])
def test_gradients_flow_through_selected_entries_alone(method, k):
    S = matrix(2).requires_grad_()
    set_similarities(S, ROWS, COLS, method=method, k=k)[0, 1].backward()
    outside = torch.ones_like(S, dtype=torch.bool)
    outside[0:3, 2:7] = False
    assert not S.grad[outside].any()
    assert 0 < int((S.grad != 0).sum()) <= {"DC": 8, "AP": 2}[method]
    # The weights of the entries of an average sum to 1: once per side.
    assert S.grad.sum().item() == pytest.approx({"DC": 2, "AP": 1}[method])


def test_bad_input_is_refused():
    S = matrix()
    refuses(ValueError, "row_offsets", set_similarities, S, [0, 3], COLS)
    refuses(ValueError, "S", set_similarities, S * float("nan"), ROWS, COLS)
    refuses(ValueError, "method", set_similarities, S, ROWS, COLS, method="OT")


@pytest.mark.parametrize("negatives", ["hardest", "mean", "sum"])
@pytest.mark.parametrize("with_mask", [False, True])
def test_hinge_loss_is_its_formula(negatives, with_mask):
    S = matrix(3, shape=(6, 6))
    mask = np.zeros((6, 6), bool)
    if with_mask:
        mask[0, 1] = mask[4, 2] = True
        mask[5] = True
    loss = hinge_loss(
        S,
        margin=0.3,
        negatives=negatives,
        excluded=torch.from_numpy(mask) if with_mask else None,
    )
    total = 0.0
    values = S.numpy()
    choose = {"hardest": max, "sum": sum, "mean": np.mean}[negatives]
    for i in range(6):
        for own, masked in ((values[i], mask[i]), (values[:, i], mask[:, i])):
            others = [j for j in range(6) if j != i and not masked[j]]
            if others:
                total += choose([max(0.0, 0.3 - values[i, i] + own[j]) for j in others])
    assert float(loss) == pytest.approx(total / 6, rel=1e-12)


def test_a_loss_without_violations_is_zero():
    S = torch.eye(4)
    assert float(hinge_loss(S, margin=0.5)) == 0
    assert float(hinge_loss(torch.ones(1, 1))) == 0  # nothing to compare with
    assert float(hinge_loss(torch.zeros(2, 2), margin=0.25)) == 0.5  # both directions


def test_loss_refuses_what_is_not_square():
    with pytest.raises(ValueError, match="square matrix"):
        hinge_loss(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="excluded"):
        hinge_loss(torch.zeros(2, 2), excluded=torch.zeros(3, 3, dtype=torch.bool))
    refuses(ValueError, "negatives", hinge_loss, torch.zeros(2, 2), negatives="easiest")
