"""The gated recurrent unit against torch's own, and its gradient."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from kernelcore.deep import seeded_generator  # noqa: E402
from kernelcore.deep.recurrent import (  # noqa: E402
    BidirectionalGRU,
    last_states,
    packed_states,
)

LENGTHS = [
    [3, 5, 1, 2],
    [1],
    [4, 4, 4],
    [1, 1],
    [7, 1, 7, 6, 2, 2],
]


def problem(lengths, dtype=torch.float64):
    torch_generator = torch.Generator().manual_seed(len(lengths))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        gru = torch.nn.GRU(3, 4, batch_first=True, dtype=dtype)
    shape = (len(lengths), max(lengths), 3)
    data = torch.randn(shape, generator=torch_generator, dtype=dtype, requires_grad=True)
    return gru, data


def pack(data, lengths):
    return pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False)


def gradients(output, gru, data):
    weights = torch.linspace(-1, 2, output.numel(), dtype=output.dtype).view_as(output)
    return torch.autograd.grad((output * weights).sum(), [data, *gru.parameters()])


@pytest.mark.parametrize("lengths", LENGTHS)
def test_states_and_gradients_are_those_of_torch(lengths):
    gru, data = problem(lengths)
    expected, _ = gru(pack(data, lengths))
    states = packed_states(gru, pack(data, lengths))
    torch.testing.assert_close(states, expected.data, atol=1e-12, rtol=0)
    for ours, theirs in zip(
        gradients(states, gru, data), gradients(expected.data, gru, data), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_last_states_are_those_of_torch(lengths):
    gru, data = problem(lengths)
    _, expected = gru(pack(data, lengths))
    packed = pack(data, lengths)
    last = last_states(packed_states(gru, packed), packed)
    torch.testing.assert_close(last, expected[0], atol=1e-12, rtol=0)
    for ours, theirs in zip(
        gradients(last, gru, data), gradients(expected[0], gru, data), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-10, rtol=0)


def test_gradients_agree_with_finite_differences():
    lengths = [3, 1, 2]
    gru, data = problem(lengths)

    def states(x, *weights):
        for parameter, weight in zip(list(gru._parameters), weights, strict=True):
            del gru._parameters[parameter]
            gru._parameters[parameter] = weight
        return packed_states(gru, pack(x, lengths))

    weights = [p.detach().clone().requires_grad_() for p in gru.parameters()]
    assert torch.autograd.gradcheck(states, (data, *weights))


def test_sequences_sorted_beforehand_are_left_in_their_order():
    gru, data = problem([3, 2, 2])
    packed = pack_padded_sequence(data, [3, 2, 2], batch_first=True)
    assert packed.unsorted_indices is None
    _, expected = gru(packed)
    torch.testing.assert_close(
        last_states(packed_states(gru, packed), packed), expected[0], atol=1e-12, rtol=0
    )


def test_float32_stays_float32():
    gru, data = problem([2, 3], torch.float32)
    assert packed_states(gru, pack(data, [2, 3])).dtype == torch.float32


@pytest.mark.parametrize("lengths", LENGTHS)
def test_both_directions_are_those_of_torch(lengths):
    ours = BidirectionalGRU(3, 4, generator=seeded_generator(0)).double()
    theirs = torch.nn.GRU(3, 4, batch_first=True, bidirectional=True, dtype=torch.float64)
    theirs.load_state_dict(
        {
            **ours.onward.state_dict(),
            **{f"{name}_reverse": value for name, value in ours.back.state_dict().items()},
        }
    )
    _, data = problem(lengths)
    packed = pack(data, lengths)
    states, last = theirs(packed)
    expected = states.data.unflatten(1, (2, 4)).mean(1)
    torch.testing.assert_close(ours(packed), expected, atol=1e-12, rtol=0)
    torch.testing.assert_close(ours.last(packed), last.mean(0), atol=1e-12, rtol=0)
