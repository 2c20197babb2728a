"""Long short-term memory over packed sequences, with its gradient."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.utils.rnn import PackedSequence

from kernelcore.captions.encoded import offsets_of


def packed_lstm_states(lstm: nn.LSTM, packed: PackedSequence) -> Tensor:
    r"""States of a long short-term memory after every element of packed sequences.

    .. math::

        (i_t, f_t, o_t) &= \sigma(W x_t + U h_{t-1} + b) \\
        g_t &= \tanh(W_g x_t + U_g h_{t-1} + b_g) \\
        c_t &= f_t \odot c_{t-1} + i_t \odot g_t \\
        h_t &= o_t \odot \tanh(c_t)

    On a CPU this is faster than torch's own, as
    `kernelcore.deep.recurrent.packed_states` is for gated recurrent units: what does not
    depend on the state is computed for all steps at once.

    Parameters
    ----------
    lstm : LSTM
        One layer in one direction.
    packed : PackedSequence

    Returns
    -------
    Tensor of shape (n_elements, n_components)
        :math:`h_t` in the order of the packed elements.

    Examples
    --------
    >>> import torch
    >>> from torch.nn.utils.rnn import pack_padded_sequence
    >>> from kernelcore.deep.order_lstm import packed_lstm_states
    >>> lstm = torch.nn.LSTM(2, 3, batch_first=True)
    >>> packed = pack_padded_sequence(torch.ones(2, 4, 2), [4, 1], batch_first=True)
    >>> torch.allclose(packed_lstm_states(lstm, packed), lstm(packed)[0].data)
    True
    """
    states: Tensor
    if packed.data.device.type == "cpu":
        states = _Memory.apply(  # type: ignore[no-untyped-call]
            packed.data,
            lstm.weight_ih_l0,
            lstm.weight_hh_l0,
            lstm.bias_ih_l0,
            lstm.bias_hh_l0,
            offsets_of(packed.batch_sizes.numpy()).tolist(),
        )
    else:
        states = lstm(packed)[0].data
    return states


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, ...]
    offsets: list[int]


class _Memory(torch.autograd.Function):
    """The states of all steps; rows of step t are those of `offsets[t]` to `offsets[t + 1]`."""

    @staticmethod
    def forward(
        ctx: _Context,
        data: Tensor,
        w_in: Tensor,
        w_state: Tensor,
        *biases_and_offsets: Any,
    ) -> Tensor:
        b_in, b_state, offsets = biases_and_offsets
        size = w_state.shape[1]
        gates = torch.addmm(b_in + b_state, data, w_in.T)  # becomes i, f, g and o, step by step
        cells, states = (data.new_empty((len(data), size)) for _ in range(2))
        cell, state = (data.new_zeros((offsets[1], size)) for _ in range(2))
        for start, end in pairwise(offsets):
            count = end - start
            step = gates[start:end].addmm_(state[:count], w_state.T)
            step[:, : 2 * size].sigmoid_()
            entering = step[:, 2 * size : 3 * size].tanh_()
            leaving = step[:, 3 * size :].sigmoid_()
            kept = cell[:count] * step[:, size : 2 * size]
            cell = torch.addcmul(kept, step[:, :size], entering, out=cells[start:end])
            state = torch.mul(leaving, cell.tanh(), out=states[start:end])
        ctx.save_for_backward(data, w_in, w_state, gates, cells, states)
        ctx.offsets = offsets
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, upstream: Tensor) -> Any:
        data, w_in, w_state, gates, cells, states = ctx.saved_tensors
        offsets, size = ctx.offsets, w_state.shape[1]
        i, f, g, o = gates.tensor_split(4, dim=1)
        shown = cells.tanh()
        # What the gradients by cell and state are multiplied by on their way into each gate.
        into_cell = o * (1 - shown * shown)
        into_gates = torch.cat(
            [
                g * i * (1 - i),
                _shifted(cells, offsets) * f * (1 - f),
                i * (1 - g * g),
                shown * o * (1 - o),
            ],
            dim=1,
        )
        by_cell, by_state = (upstream.new_zeros((0, size)) for _ in range(2))
        for start, end in reversed(list(pairwise(offsets))):
            later_cell, later_state = by_cell, by_state
            by_state = upstream[start:end].clone()
            by_state[: len(later_state)] += later_state
            by_cell = by_state * into_cell[start:end]
            by_cell[: len(later_cell)] += later_cell
            step = into_gates[start:end].view(-1, 4, size)  # becomes the gates' gradient
            step[:, :3] *= by_cell.unsqueeze(1)
            step[:, 3] *= by_state
            by_state = into_gates[start:end] @ w_state
            by_cell = by_cell.mul_(f[start:end])
        first = offsets[1]
        by_bias = into_gates.sum(0)
        return (
            into_gates @ w_in,
            into_gates.T @ data,
            into_gates[first:].T @ _shifted(states, offsets)[first:],
            by_bias,
            by_bias,
            None,
        )


def _shifted(rows: Tensor, offsets: list[int]) -> Tensor:
    """Return, for each element of packed sequences, the row of the one before, or zeros."""
    before = torch.zeros_like(rows)
    for (start, middle), (_, end) in zip(
        pairwise(offsets[:-1]), pairwise(offsets[1:]), strict=True
    ):
        before[middle:end] = rows[start : start + end - middle]
    return before
