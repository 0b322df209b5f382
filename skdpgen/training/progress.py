"""How far a training is: loops tell it, without knowing who listens.

What is told follows from the release and from public settings, as the training itself does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

__all__ = ["Listener", "Progress", "unwatched", "watching"]

#: Called with the number of steps done, the number of steps planned, and the loss of the last step;
#: True ends the training.
Listener: TypeAlias = Callable[[int, int, float], object]

# A context variable: threads and tasks have listeners of their own, processes none.
_listeners: ContextVar[tuple[Listener, ...]] = ContextVar("skdpgen_listeners", default=())


@contextmanager
def watching(listener: Listener) -> Iterator[None]:
    """Have a listener told of every step of all trainings inside of a ``with`` block.

    Listeners of blocks around it go on being told, the outermost one first.

    Parameters
    ----------
    listener : callable
        Called as ``listener(step, n_steps, loss)`` after each step: ``step`` counts from 1,
        ``n_steps`` is how many are planned, ``loss`` is that of the step, the noise floor
        included, and NaN or infinite where training diverges. Where training ends early there is
        one more call, with ``n_steps`` set to what was done: the last call of every training has
        ``step == n_steps``. If it returns True the training ends with this step, and keeps what it
        has. What it raises is raised by the training.

    Yields
    ------
    None
        Nothing.

    Examples
    --------
    >>> from skdpgen.training.progress import Progress, watching
    >>> with watching(lambda *call: print(*call)):
    ...     progress = Progress(3)
    ...     for loss in (0.5, 0.25):
    ...         stop = progress.step(loss)
    ...     progress.end()
    1 3 0.5
    2 3 0.25
    2 2 0.25
    """
    token = _listeners.set((*_listeners.get(), listener))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def unwatched() -> Iterator[None]:
    """Tell nobody inside of a ``with`` block: for trainings that are secret, or no real ones."""
    token = _listeners.set(())
    try:
        yield
    finally:
        _listeners.reset(token)


class Progress:
    """Where one training is; the loop calls :meth:`step` after each step and :meth:`end` once.

    Parameters
    ----------
    n_steps : int
        Planned steps.
    """

    def __init__(self, n_steps: int) -> None:
        # Those of the loop's beginning: a step without a listener costs next to nothing.
        self._listeners = _listeners.get()
        self._n_steps = n_steps
        self._done = 0
        self._loss = math.nan

    def step(self, loss: float) -> bool:
        """Tell that one more step is done, and ask whether it is the last.

        Returns
        -------
        bool
            Whether a listener wants the training to end.
        """
        self._done += 1
        self._loss = loss
        answers = [listener(self._done, self._n_steps, loss) for listener in self._listeners]
        return any(answer is True for answer in answers)

    def end(self) -> None:
        """Tell that no step will follow, unless all planned ones are done."""
        if self._done < self._n_steps:
            for listener in self._listeners:
                listener(self._done, self._done, self._loss)
