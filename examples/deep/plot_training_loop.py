"""
The parts of a deep ranker
==========================

Losses, encoders and the training loop can be used for a model of your own.
"""

# %%
# A model of two encoders: rows of features, and word ids.

import matplotlib.pyplot as plt
import numpy as np
import torch

from kernelcore.deep import (
    BatchDoubling,
    Cooldown,
    History,
    ImageEncoder,
    Objective,
    Plateau,
    Schedule,
    SentenceEncoder,
    Sentences,
    alignment_loss,
    cross_attention,
    dropout,
    fragment_similarities,
    hinge_loss,
    order_similarities,
    seeded_generator,
    set_similarities,
    train,
)

torch.set_num_threads(1)  # so small a model gains nothing by more
generator = seeded_generator(0)
features = torch.randn(64, 12, generator=generator)
word_ids = (features[:, :4] > 0).long() + torch.arange(1, 8, 2)
sentences = Sentences(word_ids, torch.full((64,), 4))


class Model(torch.nn.Module):
    """Encoders of both sides."""

    def __init__(self):
        super().__init__()
        self.images = ImageEncoder(12, 16, generator=generator)
        self.words = SentenceEncoder(
            torch.randn(9, 8, generator=generator), 16, generator=generator
        )

    def similarities(self, rows):
        """Cosines of all pairs."""
        return self.images(features[rows]) @ self.words(sentences.take(rows)).T


class Pairs:
    """Minibatches of pairs; the others of a batch are the negatives."""

    def __init__(self, model):
        self.model = model

    def batches(self, batch_size, generator):
        """Return the training rows in a random order."""
        return torch.randperm(48, generator=generator).split(batch_size)

    def loss(self, batch, epoch, generator):
        """Return the margin loss of a batch."""
        return hinge_loss(self.model.similarities(batch), negatives="mean")

    def evaluate(self):
        """Return the development loss."""
        with torch.no_grad():
            S = self.model.similarities(torch.arange(48, 64))
        return {"dev_loss": float(hinge_loss(S, negatives="mean"))}


# %%
# Schedules set the learning rate and the batch size from the losses so far:

schedules: dict[str, Schedule] = {
    "plateau": Plateau(0.01, 16, patience=1),
    "cooldown": Cooldown(0.01, 16, n_epochs=10),
    "batch doubling": BatchDoubling(0.01, 8, floor=0.002),
}
figure, ax = plt.subplots(layout="constrained")
for name, schedule in schedules.items():
    model = Model()
    objective: Objective = Pairs(model)
    history: History = train(
        model, objective, schedule=schedule, n_epochs=10, generator=seeded_generator(0)
    )
    ax.plot(np.arange(1, len(history.dev_losses) + 1), history.dev_losses, label=name)
ax.set(xlabel="epoch", ylabel="development loss")
ax.legend()
pace = schedules["plateau"]([0.5, 0.4])
print(pace)

# %%
# Other similarities: of sets by assignment, with gradients; of vectors by their order; of
# regions and words by attention; of fragments.

S = torch.rand(4, 4, generator=generator, requires_grad=True)
set_similarities(S, [0, 2, 4], [0, 2, 4], method="AP").sum().backward()
print(S.grad)
print(order_similarities(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 3.0], [0.0, 0.0]])))

regions, words = torch.eye(3)[:2], torch.eye(3)[1:]
whole = torch.ones(1, 2, dtype=torch.bool)
attended = cross_attention(
    (regions @ words.T).reshape(1, 2, 1, 2),
    (regions @ regions.T).reshape(1, 2, 2),
    whole,
    whole,
    temperature=9.0,
    pooling="mean",
)
print(round(float(attended), 3))

products = torch.tensor([[0.5, -0.2], [-0.5, 0.7]])
offsets = np.array([0, 2]), np.array([0, 2])
print(fragment_similarities(products, *offsets, smoothing=1.0))
print(alignment_loss(products, *offsets, multiple_instance=True))
print(dropout(torch.ones(6), 0.5, seeded_generator(0)))
