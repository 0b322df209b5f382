"""Squared maximum mean discrepancy between a released and a generated mean embedding.

The release holds, per class c, an estimate T_c of ``(1/n) sum_i phi(x_i) [y_i = c]``, which is
p_c times the mean embedding of the class. A generator that makes rows of class c with mean
embedding m_c is at the truth when ``T_c = p_c m_c``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

__all__ = ["Objective", "class_weights", "embedding_loss", "noise_floor", "squared_distance"]

Objective: TypeAlias = Literal["joint", "reweighted"]


def squared_distance(first: Tensor, second: Tensor) -> Tensor:
    """Squared Euclidean distance of two mean embeddings: the squared MMD of random features.

    Parameters
    ----------
    first, second : Tensor of shape (..., n_features)
        Mean embeddings.

    Returns
    -------
    Tensor of shape (...)
        Squared distances.

    Examples
    --------
    >>> import torch
    >>> squared_distance(torch.tensor([3.0, 0.0]), torch.tensor([0.0, 4.0]))
    tensor(25.)
    """
    return (first - second).square().sum(dim=-1)


def class_weights(proportions: Tensor, objective: Objective, noise_energy: float = 0.0) -> Tensor:
    """Weight of each class in the loss.

    Parameters
    ----------
    proportions : Tensor of shape (n_classes,)
        Positive class proportions p_c.
    objective : {"joint", "reweighted"}
        ``"joint"`` compares the joint embeddings, sum_c ||T_c - p_c m_c||^2: weights 1.
        ``"reweighted"`` compares the embeddings within the classes,
        sum_c ||T_c / p_c - m_c||^2: weights 1 / p_c^2. It is the variant for imbalanced data
        of DP-MERF (arXiv 2002.11603, section 4.2), in which a rare class counts as much as a
        frequent one.
    noise_energy : float, default=0.0
        Expected squared norm of the privacy noise of one class. Reweighted weights are
        1 / (p_c^2 + noise_energy): as in the paper where a class stands out of the noise, while
        a class below it, whose T_c / p_c is mostly noise, can't outweigh all others.

    Returns
    -------
    Tensor of shape (n_classes,)
        The weights.

    Examples
    --------
    >>> import torch
    >>> class_weights(torch.tensor([0.75, 0.25]), "reweighted")
    tensor([ 1.7778, 16.0000])
    """
    if objective == "joint":
        return torch.ones_like(proportions)
    return 1 / (proportions.square() + noise_energy)


def embedding_loss(
    target: Tensor, features: Tensor, labels: Tensor, proportions: Tensor, weights: Tensor
) -> Tensor:
    """Unbiased estimate of sum_c w_c ||T_c - p_c m_c||^2 from a batch of generated rows.

    The plain estimate, which puts batch means in the place of m_c, is too large by
    w_c p_c^2 tr Cov(phi) / n_c. Two things follow from that excess: it depends on the batch size,
    and its gradient asks for rows of less variance, for flat softmaxes above all. The mean
    over pairs of different rows (the U-statistic) has no such excess:
    ||m_c||^2 is estimated by (n_c ||mean||^2 - mean ||phi||^2) / (n_c - 1).

    Parameters
    ----------
    target : Tensor of shape (n_classes, n_features)
        Released embedding T.
    features : Tensor of shape (n_rows, n_features)
        Embeddings phi of the generated rows.
    labels : Tensor of shape (n_rows, n_classes)
        Their one-hot labels; each class has at least two rows.
    proportions : Tensor of shape (n_classes,)
        Class proportions p_c.
    weights : Tensor of shape (n_classes,)
        Weights w_c, see :func:`class_weights`.

    Returns
    -------
    Tensor of shape ()
        The estimate. Near the optimum it can be slightly negative.

    Examples
    --------
    >>> import torch
    >>> rows = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> one = torch.ones(1)
    >>> embedding_loss(torch.zeros(1, 2), rows, torch.ones(2, 1), one, one)
    tensor(0.)
    """
    counts = labels.sum(dim=0)
    means = (labels.T @ features) / counts[:, None]
    mean_square = (labels.T @ features.square().sum(dim=1, keepdim=True)).squeeze(1) / counts
    excess = (mean_square - means.square().sum(dim=1)) / (counts - 1)
    plain = squared_distance(target, proportions[:, None] * means)
    return (weights * (plain - proportions.square() * excess)).sum()


def noise_floor(n_features: int, noise_stddev: float, weights: Tensor) -> float:
    """Give the expected loss at the truth: what the privacy noise alone contributes.

    Each of the ``n_features`` coordinates of T_c carries noise of variance s^2, so
    E ||T_c - p_c m_c||^2 = n_features s^2 at the truth. Subtract it from a loss to get an
    unbiased estimate of the squared MMD to the private rows; a loss far below it fits noise.

    Parameters
    ----------
    n_features : int
        Number of real coordinates of the embedding.
    noise_stddev : float
        Noise standard deviation s per coordinate of T.
    weights : Tensor of shape (n_classes,)
        Class weights of the loss.

    Returns
    -------
    float
        n_features s^2 sum_c w_c.

    Examples
    --------
    >>> import torch
    >>> noise_floor(100, 0.5, torch.ones(2))
    50.0
    """
    return n_features * noise_stddev**2 * float(weights.sum())
