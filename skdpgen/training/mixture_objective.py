"""Distance of a mixture of products to a release of interaction features, with its gradient.

The expected feature of a mixture of products is exact: given the component the columns are
independent, so the mean of ``exp(i sum_j theta_j[x_j])`` is the product over the columns of
``sum_c p_j[c] exp(i theta_j[c])``. No rows are drawn, and nothing is approximated.

The gradient is written out by hand (a test compares it to automatic differentiation): in real
arithmetic on contiguous rows it takes a third of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["FrequencyGroup", "frequency_groups", "interaction_loss", "one_way_loss"]

# Frequencies of one subset that stay together: they share a table, and a group mixes many subsets.
_BLOCK = 8
# Frequencies worked on at once: their arrays stay in the cache of a core.
_SEGMENT = 64


@dataclass(frozen=True)
class FrequencyGroup:
    """Some frequencies, ready for a gradient step: one mini-batch of a fixed partition.

    Frequencies stand in *segments* of up to 64 that look at the same number of columns. A segment
    of m frequencies of order k has k slots of 2 m rows each, one column a slot, one after the
    other: real parts above imaginary ones.

    Parameters
    ----------
    tables : tuple of (int, Tensor, Tensor)
        Per column: its index, the cosines above the sines of its phases, shape (2 m, n_codes),
        and which rows they fill. The first column of a frequency carries its amplitude.
    segments : tuple of (int, int)
        Order and number of frequencies of each segment.
    released : Tensor of shape (2 G, n_classes)
        Released joint mean embedding, in the order of the segments: in each, cosines above sines.
    """

    tables: tuple[tuple[int, Tensor, Tensor], ...]
    segments: tuple[tuple[int, int], ...]
    released: Tensor

    @property
    def size(self) -> int:
        """Number of frequencies G."""
        return len(self.released) // 2

    @property
    def embedding(self) -> NDArray[np.complex64]:
        """The released joint mean embedding as complex numbers, of shape (G, n_classes)."""
        parts = []
        first = 0
        for _, length in self.segments:
            cosines, sines = (
                self.released[first:][: 2 * length].cpu().numpy().reshape(2, length, -1)
            )
            parts.append(cosines + 1j * sines)
            first += 2 * length
        return np.concatenate(parts)


def frequency_groups(
    subsets: Sequence[Sequence[int]],
    phases: Sequence[Sequence[NDArray[np.uint16]]],
    target: NDArray[np.float64],
    amplitudes: NDArray[np.float64],
    size: int,
    rng: np.random.Generator,
    device: torch.device | None = None,
) -> list[FrequencyGroup]:
    """Split frequencies into groups of about equal size, and gather the tables of each once.

    Parameters
    ----------
    subsets : sequence of sequences of int
        The columns that each subset looks at.
    phases : sequence of sequences of ndarray of uint16
        Per subset and column, the phases of shape (n_codes, m) in 2^-16 turns.
    target : ndarray of shape (n_classes, 2 F)
        Released joint mean embedding: all cosines, then all sines, in the order of the subsets.
    amplitudes : ndarray of shape (F,)
        Amplitude of each frequency in ``target``, and so its weight in the loss.
    size : int
        Frequencies a group.
    rng : numpy Generator
        Decides which frequencies go together.
    device : torch.device, optional
        Where the tables shall lie.

    Returns
    -------
    list of FrequencyGroup
    """
    offsets = np.cumsum([0, *(subset[0].shape[1] for subset in phases)]).tolist()
    blocks = [
        (s, start, min(start + _BLOCK, offsets[s + 1] - offsets[s]))
        for s in range(len(subsets))
        for start in range(0, offsets[s + 1] - offsets[s], _BLOCK)
    ]
    n_groups = min(max(1, round(offsets[-1] / size)), len(blocks))
    order = rng.permutation(len(blocks))
    groups = []
    for part in np.array_split(order, n_groups):
        chosen = [blocks[i] for i in part]
        segments = _segmented(chosen, subsets)
        groups.append(_gather(segments, phases, offsets, target, amplitudes, device))
    return groups


#: A segment: the columns of each subset, with the block of its frequencies.
_Segment = list[tuple[Sequence[int], tuple[int, int, int]]]


def _segmented(
    blocks: Sequence[tuple[int, int, int]], subsets: Sequence[Sequence[int]]
) -> list[_Segment]:
    """Blocks of equal order, in lists of up to 64 frequencies."""
    segments: list[_Segment] = []
    filled, order = _SEGMENT, 0
    for block in sorted(blocks, key=lambda block: len(subsets[block[0]])):
        columns = subsets[block[0]]
        length = block[2] - block[1]
        if len(columns) != order or filled + length > _SEGMENT:
            segments.append([])
            filled, order = 0, len(columns)
        segments[-1].append((columns, block))
        filled += length
    return segments


def _gather(
    segments: Sequence[_Segment],
    phases: Sequence[Sequence[NDArray[np.uint16]]],
    offsets: Sequence[int],
    target: NDArray[np.float64],
    amplitudes: NDArray[np.float64],
    device: torch.device | None,
) -> FrequencyGroup:
    used: dict[int, list[tuple[NDArray[np.float32], list[NDArray[np.int64]]]]] = {}
    shapes: list[tuple[int, int]] = []
    picked: list[NDArray[np.int64]] = []
    first_row = 0
    for segment in segments:
        length = sum(b - a for _, (_, a, b) in segment)
        position = first_row
        chosen = []
        for columns, (s, a, b) in segment:
            frequencies = np.arange(offsets[s] + a, offsets[s] + b)
            for slot, column in enumerate(columns):
                real = position + slot * 2 * length + np.arange(b - a)
                angle = 2 * np.pi / 2**16 * phases[s][slot][:, a:b].T
                waves = np.stack([np.cos(angle), np.sin(angle)])
                if slot == 0:
                    waves *= amplitudes[frequencies][:, None]
                used.setdefault(column, []).append(
                    (waves.astype(np.float32), [real, real + length])
                )
            chosen.append(frequencies)
            position += b - a
        shapes.append((len(segment[0][0]), length))
        first_row += len(segment[0][0]) * 2 * length
        picked += [*chosen, *(frequencies + len(amplitudes) for frequencies in chosen)]
    tables = []
    for column, parts in sorted(used.items()):
        table = np.concatenate([waves for waves, _ in parts], axis=1)
        table = table.reshape(-1, table.shape[-1])
        filled = np.concatenate([rows for _, rows in parts], axis=1).reshape(-1)
        tables.append(
            (column, torch.from_numpy(table).to(device), torch.from_numpy(filled).to(device))
        )
    released = torch.as_tensor(target[:, np.concatenate(picked)].T, dtype=torch.float32)
    return FrequencyGroup(tuple(tables), tuple(shapes), released.contiguous().to(device))


def interaction_loss(
    group: FrequencyGroup,
    atoms: Sequence[Tensor],
    shares: Tensor,
    class_weights: Tensor,
    atom_gradients: Sequence[Tensor],
    share_gradient: Tensor,
) -> Tensor:
    """Mean squared distance to the released features of a group; adds its gradient.

    Parameters
    ----------
    group : FrequencyGroup
        Frequencies and released features.
    atoms : sequence of Tensor of shape (n_codes, E * K)
        Per column, the probabilities of its codes in each component. There are E mixtures of K
        components each, fitted side by side.
    shares : Tensor of shape (E, n_classes, K)
        Joint probability of class and component; each mixture sums to 1.
    class_weights : Tensor of shape (n_classes,)
        Weight of each class.
    atom_gradients, share_gradient : Tensors of the shapes of ``atoms`` and ``shares``
        The gradient of the sum over the mixtures is added to them.

    Returns
    -------
    Tensor of shape (E,)
        ``sum_c w_c |predicted - released|^2 / G`` of each mixture.
    """
    n_mixtures, n_classes, n_components = shares.shape
    n_rows = sum(order * 2 * length for order, length in group.segments)
    waves = shares.new_empty(n_rows, n_mixtures * n_components)
    for column, table, rows in group.tables:
        waves.index_copy_(0, rows, table @ atoms[column])

    # All mixtures in one product: their shares as the blocks of a block-diagonal matrix.
    mixing = torch.block_diag(*shares)  # (E C, E K)
    weights = (2 * class_weights / group.size).repeat(n_mixtures)
    squares = shares.new_zeros(n_mixtures * n_classes)
    mixing_gradient = torch.zeros_like(mixing)
    row = first = 0
    for order, length in group.segments:
        height = 2 * length
        slots = waves[row : row + order * height].view(order, 2, length, -1)
        products = _products(slots)
        product = products[-1].view(height, -1)
        residual = product @ mixing.mT
        released = group.released[first : first + height]
        residual.view(height, n_mixtures, n_classes).sub_(released[:, None])
        # The gradient of the squares; half of it times the residual is their sum.
        weighted = residual * weights
        squares += (residual * weighted).sum(dim=0)
        mixing_gradient.addmm_(weighted.mT, product)
        _product_gradients(slots, products, (weighted @ mixing).view(2, length, -1))
        row += order * height
        first += height
    for column, table, rows in group.tables:
        atom_gradients[column].addmm_(table.mT, waves[rows])
    share_gradient += _own_blocks(mixing_gradient, shares)
    return squares.view(n_mixtures, n_classes).sum(dim=1) / 2


def _own_blocks(matrix: Tensor, shares: Tensor) -> Tensor:
    """The diagonal blocks of an (E C, E K) matrix, those of each mixture with itself."""
    n_mixtures, n_classes, n_components = shares.shape
    blocks = matrix.view(n_mixtures, n_classes, n_mixtures, n_components)
    return torch.diagonal(blocks, dim1=0, dim2=2).movedim(-1, 0)


def _products(slots: Tensor) -> list[Tensor]:
    """Running complex products over the slots, each of shape (2, m, E K): real, imaginary."""
    products = [slots[0]]
    for re, im in slots[1:]:
        a, b = products[-1]
        product = torch.empty_like(products[-1])
        torch.mul(a, re, out=product[0]).addcmul_(b, im, value=-1)
        torch.mul(a, im, out=product[1]).addcmul_(b, re)
        products.append(product)
    return products


def _product_gradients(slots: Tensor, products: Sequence[Tensor], gradient: Tensor) -> None:
    """Gradients of the slots from that of the product; they overwrite the slots."""
    for level in range(len(slots) - 1, 0, -1):
        re, im = slots[level]
        a, b = products[level - 1]
        g_re, g_im = gradient
        below = torch.empty_like(gradient)
        torch.mul(g_re, re, out=below[0]).addcmul_(g_im, im)
        torch.mul(g_im, re, out=below[1]).addcmul_(g_re, im, value=-1)
        torch.mul(g_re, a, out=re).addcmul_(g_im, b)
        torch.mul(g_im, a, out=im).addcmul_(g_re, b, value=-1)
        gradient = below
    slots[0].copy_(gradient)


def one_way_loss(
    atoms: Tensor,
    released: Tensor,
    shares: Tensor,
    weights: Tensor,
    atom_gradient: Tensor,
    share_gradient: Tensor,
) -> Tensor:
    """Weighted squared distance to the released one-way tables; adds its gradient.

    Parameters
    ----------
    atoms : Tensor of shape (N, E * K)
        Probabilities of all columns' codes, stacked.
    released : Tensor of shape (n_classes, N)
        Released joint shares of code and class.
    shares : Tensor of shape (E, n_classes, K)
        Joint probability of class and component.
    weights : Tensor of shape (n_classes,)
        Weight of each class.
    atom_gradient, share_gradient : Tensors of the shapes of ``atoms`` and ``shares``
        The gradient of the sum over the mixtures is added to them.

    Returns
    -------
    Tensor of shape (E,)
        The loss of each mixture.
    """
    n_mixtures, n_classes, _ = shares.shape
    mixing = torch.block_diag(*shares)  # (E C, E K)
    residual = atoms @ mixing.mT
    residual.view(len(atoms), n_mixtures, n_classes).sub_(released.mT[:, None])
    weighted = residual * weights.repeat(n_mixtures)
    atom_gradient.addmm_(weighted, mixing, alpha=2)
    share_gradient.add_(_own_blocks(weighted.mT @ atoms, shares), alpha=2)
    return (weighted * residual).sum(dim=0).view(n_mixtures, n_classes).sum(dim=1)
