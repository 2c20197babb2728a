"""Long short-term memory against torch's own and against finite differences."""

import pytest

torch = pytest.importorskip("torch")

from torch.nn.utils.rnn import pack_padded_sequence  # noqa: E402

from kernelcore.deep.order_lstm import packed_lstm_states  # noqa: E402
from kernelcore.deep.recurrent import last_states  # noqa: E402

LENGTHS = [[3, 5, 1, 2], [1], [4], [2, 2, 2], [1, 1, 1], [7, 1]]


def problem(lengths, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    lstm = torch.nn.LSTM(3, 4, batch_first=True, dtype=dtype)
    with torch.no_grad():
        for parameter in lstm.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    data = torch.randn(len(lengths), max(lengths), 3, generator=generator).to(dtype)
    return lstm, data.requires_grad_()


def pack(data, lengths):
    return pack_padded_sequence(data, lengths, batch_first=True, enforce_sorted=False)


@pytest.mark.parametrize("lengths", LENGTHS)
def test_states_and_gradients_are_those_of_torch(lengths):
    lstm, data = problem(lengths)
    found = []
    for run in (packed_lstm_states, lambda lstm, packed: lstm(packed)[0].data):
        states = run(lstm, pack(data, lengths))
        weights = torch.linspace(-1, 1, states.numel(), dtype=states.dtype)
        loss = (states.flatten() * weights).sum()
        found.append([states, *torch.autograd.grad(loss, [data, *lstm.parameters()])])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-11, rtol=0)


def test_gradients_are_those_of_finite_differences():
    lengths = [3, 1, 2]
    lstm, data = problem(lengths)
    names, weights = zip(*lstm.named_parameters(), strict=True)

    def states(data, *weights):
        for name, weight in zip(names, weights, strict=True):
            delattr(lstm, name)
            setattr(lstm, name, weight)
        return packed_lstm_states(lstm, pack(data, lengths))

    free = [weight.detach().clone().requires_grad_() for weight in weights]
    assert torch.autograd.gradcheck(states, (data, *free))


def test_last_states_are_those_of_torch():
    lengths = [3, 5, 1, 2]
    lstm, data = problem(lengths)
    packed = pack(data, lengths)
    _, (expected, _) = lstm(packed)
    found = last_states(packed_lstm_states(lstm, packed), packed)
    torch.testing.assert_close(found, expected[0], atol=1e-12, rtol=0)


def test_float32_stays_float32():
    lstm, data = problem([2, 3], torch.float32)
    assert packed_lstm_states(lstm, pack(data, [2, 3])).dtype == torch.float32
