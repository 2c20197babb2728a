"""A gated recurrent unit over packed sequences, with its gradient."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.utils.rnn import PackedSequence

from kernelcore.captions.encoded import offsets_of


def packed_states(gru: nn.GRU, packed: PackedSequence) -> Tensor:
    r"""States of a gated recurrent unit after every element of packed sequences.

    .. math::

        r_t &= \sigma(W_r x_t + b_r + U_r h_{t-1} + c_r) \\
        z_t &= \sigma(W_z x_t + b_z + U_z h_{t-1} + c_z) \\
        n_t &= \tanh(W_n x_t + b_n + r_t \odot (U_n h_{t-1} + c_n)) \\
        h_t &= (1 - z_t) \odot n_t + z_t \odot h_{t-1}

    On a CPU this is faster than torch's own: what does not depend on the state
    is computed for all steps at once, and so are the gradients by the weights.

    Parameters
    ----------
    gru : GRU
        One layer in one direction.
    packed : PackedSequence

    Returns
    -------
    Tensor of shape (n_elements, n_components)
        In the order of the packed elements.

    Examples
    --------
    >>> import torch
    >>> from torch.nn.utils.rnn import pack_padded_sequence
    >>> from kernelcore.deep.recurrent import packed_states
    >>> gru = torch.nn.GRU(2, 3, batch_first=True)
    >>> packed = pack_padded_sequence(torch.ones(2, 4, 2), [4, 1], batch_first=True)
    >>> torch.allclose(packed_states(gru, packed), gru(packed)[0].data)
    True
    """
    states: Tensor
    if packed.data.device.type == "cpu":
        states = _Recurrence.apply(  # type: ignore[no-untyped-call]
            packed.data,
            gru.weight_ih_l0,
            gru.weight_hh_l0,
            gru.bias_ih_l0,
            gru.bias_hh_l0,
            offsets_of(packed.batch_sizes.numpy()).tolist(),
        )
    else:
        states = gru(packed)[0].data
    return states


def last_states(states: Tensor, packed: PackedSequence) -> Tensor:
    """State after the last element of each sequence, in the order before they were packed."""
    starts = torch.from_numpy(offsets_of(packed.batch_sizes.numpy()))
    steps = torch.arange(int(packed.batch_sizes[0]))
    # Sequence i of the sorted ones has as many elements as there are batches larger than i.
    lengths = (packed.batch_sizes > steps.unsqueeze(1)).sum(1)
    places = starts[lengths - 1] + steps
    if packed.unsorted_indices is not None:
        places = places[packed.unsorted_indices.cpu()]
    return states[places.to(states.device)]


class _Context(FunctionCtx):
    saved_tensors: tuple[Tensor, ...]
    offsets: list[int]


class _Recurrence(torch.autograd.Function):
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
        gates = torch.addmm(b_in, data, w_in.T)  # becomes r, z and n, step by step
        candidates = data.new_empty((len(data), size))  # U_n h + c_n
        states = data.new_empty((len(data), size))
        state = data.new_zeros((offsets[1], size))
        for start, end in pairwise(offsets):
            state = state[: end - start]
            pulls = torch.addmm(b_state, state, w_state.T)
            candidates[start:end] = pulls[:, 2 * size :]
            both = gates[start:end, : 2 * size].add_(pulls[:, : 2 * size]).sigmoid_()
            new = gates[start:end, 2 * size :]
            new.addcmul_(both[:, :size], pulls[:, 2 * size :]).tanh_()
            state = torch.lerp(new, state, both[:, size:], out=states[start:end])
        ctx.save_for_backward(data, w_in, w_state, gates, candidates, states)
        ctx.offsets = offsets
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: _Context, upstream: Tensor) -> Any:
        data, w_in, w_state, gates, candidates, states = ctx.saved_tensors
        offsets, size = ctx.offsets, w_state.shape[1]
        first = offsets[1]
        before = torch.cat(
            [
                states.new_zeros((first, size)),
                *(
                    states[start : start + after - end]
                    for start, (end, after) in zip(
                        offsets[:-2], pairwise(offsets[1:]), strict=True
                    )
                ),
            ]
        )
        r, z, n = gates.tensor_split(3, dim=1)
        # What the gradient by a state is multiplied by on its way into each gate.
        into_new = (1 - z) * (1 - n * n)
        into_update = (before - n) * z * (1 - z)
        into_reset = candidates * r * (1 - r)
        by_pulls = torch.empty_like(gates)
        by_new = torch.empty_like(candidates)
        carried = upstream.new_zeros((0, size))
        for start, end in reversed(list(pairwise(offsets))):
            by_state = upstream[start:end].clone()
            by_state[: len(carried)] += carried
            step = by_pulls[start:end]
            new = torch.mul(by_state, into_new[start:end], out=by_new[start:end])
            torch.mul(new, into_reset[start:end], out=step[:, :size])
            torch.mul(by_state, into_update[start:end], out=step[:, size : 2 * size])
            torch.mul(new, r[start:end], out=step[:, 2 * size :])
            carried = torch.addmm(by_state.mul_(z[start:end]), step, w_state)
        by_inputs = torch.cat([by_pulls[:, : 2 * size], by_new], dim=1)
        return (
            by_inputs @ w_in,
            by_inputs.T @ data,
            by_pulls[first:].T @ before[first:],
            by_inputs.sum(0),
            by_pulls.sum(0),
            None,
        )
