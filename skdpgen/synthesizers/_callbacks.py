"""Who hears how far a synthesizer is: scikit-learn's callbacks, and ``verbose``; neither sees rows.

Callbacks came with scikit-learn 1.9. Before it, estimators have no ``set_callbacks``.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from numbers import Integral
from typing import Any, Self

from skdpgen.exceptions import InputError, PrivacyLeakError
from skdpgen.synthesizers._parameters import check_number
from skdpgen.training.progress import watching

try:
    from sklearn.callback import AutoPropagatedCallback, CallbackSupportMixin, with_callbacks
except ImportError:
    CallbackSupportMixin = None

__all__ = [
    "CallbackSupport",
    "check_verbose",
    "inside",
    "listening",
    "part_of",
    "refuse_callbacks_inside",
    "running",
]

# Hooks a training: more would take longer than they tell.
_N_HOOKS = 100
# Lines that verbose=1 prints a training.
_N_LINES = 10
_HOOKS = ("on_fit_task_begin", "on_fit_task_end")


if CallbackSupportMixin is None:

    class CallbackSupport:
        """Nothing: this scikit-learn has no callbacks."""

else:

    class CallbackSupport(CallbackSupportMixin):  # type: ignore[no-redef, misc]
        """Base of estimators that take callbacks, but hand them no rows."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set callbacks of scikit-learn, such as its progress bar.

            They are told when a fit, its release and its training begin and end, and up to a
            hundred times in between. They get this estimator, which holds nothing of the rows but
            the release, and never rows.

            Parameters
            ----------
            *callbacks : objects with the methods of ``sklearn.callback.FitCallback``
                None removes those set before.

            Returns
            -------
            self : the estimator itself

            Raises
            ------
            PrivacyLeakError
                If a callback asks for rows, as ``ScoringMonitor`` does.
            """
            for callback in callbacks:
                _refuse_rows(callback)
            super().set_callbacks(*callbacks)
            return self

    # Runs nothing, then calls the teardown hooks of the estimator's callbacks.
    _tear_down = with_callbacks(lambda estimator: None)


def _refuse_rows(callback: Any) -> None:
    hooks = [hook for hook in (getattr(callback, name, None) for name in _HOOKS) if callable(hook)]
    if any({"X", "y"} & inspect.signature(hook).parameters.keys() for hook in hooks):
        raise PrivacyLeakError(
            f"the callback {type(callback).__name__} asks for the rows that are fitted on (X or y "
            f"in the signature of a hook): what it does with them would not be charged for. Remove "
            f"them from the signature, or score samples of the fitted synthesizer with "
            f"skdpgen.evaluation."
        )


def check_verbose(verbose: object) -> None:
    """Refuse what isn't a number of lines to print.

    Raises
    ------
    InputError
        If it isn't a boolean or a nonnegative integer.
    """
    if not isinstance(verbose, bool):
        check_number("verbose", verbose, Integral)
        assert isinstance(verbose, Integral)
        if verbose < 0:
            raise InputError(f"verbose must be at least 0, got {verbose}.")


@contextmanager
def running(estimator: Any, task_name: str, n_parts: int = 0) -> Iterator[None]:
    """Tell callbacks that an estimator runs, within a ``with`` block.

    Parameters
    ----------
    estimator : CallbackSupport
        Hooks get it as it is, so it must hold nothing private at the ends of parts and of steps.
    task_name : str
        What runs.
    n_parts : int, default=0
        How many calls of :func:`part_of`, :func:`inside` and :func:`listening` there will be.
    """
    if CallbackSupportMixin is None:
        yield
        return
    try:
        context = estimator._init_callback_context(task_name, max_subtasks=n_parts)
        context.call_on_fit_task_begin(estimator=estimator)
        yield
        # Fitted by now: a callback may have it, and no rows with it.
        context.call_on_fit_task_end(estimator=estimator, reconstruction_attributes=lambda: {})
    finally:
        _tear_down(estimator)


@contextmanager
def part_of(estimator: Any, task_name: str) -> Iterator[None]:
    """Tell callbacks of a part of what an estimator runs."""
    context = _context_of(estimator)
    if context is None:
        yield
        return
    task = context.subcontext(task_name)
    task.call_on_fit_task_begin(estimator=estimator)
    yield
    task.call_on_fit_task_end(estimator=estimator)


@contextmanager
def inside(estimator: Any, task_name: str, worker: Any) -> Iterator[None]:
    """Tell callbacks of a part that another estimator does, which tells them of its own parts."""
    context = _context_of(estimator)
    if context is None:
        yield
        return
    task = context.subcontext(task_name)
    with task.propagate_callback_context(worker):
        task.call_on_fit_task_begin(estimator=estimator)
        yield
    task.call_on_fit_task_end(estimator=estimator)


def refuse_callbacks_inside(worker: Any) -> None:
    """Refuse callbacks that belong to the search around an estimator, before it spends budget.

    Raises
    ------
    InputError
        If the estimator has a callback that is propagated by itself, such as a progress bar.
    """
    for callback in getattr(worker, "_skl_callbacks", ()):
        if isinstance(callback, AutoPropagatedCallback):
            raise InputError(
                f"{type(callback).__name__} is set on the estimator of a search: set it on the "
                f"search, which hands it on."
            )


@contextmanager
def listening(estimator: Any) -> Iterator[None]:
    """Print what a training tells, as ``verbose`` says, and tell it to callbacks."""
    with ExitStack() as stack:
        if estimator.verbose:
            lines = None if estimator.verbose > 1 else _N_LINES
            stack.enter_context(watching(_Printer(type(estimator).__name__, lines)))
        context = _context_of(estimator)
        if context is not None:
            stack.enter_context(watching(_Hooks(estimator, context)))
        yield


def _context_of(estimator: Any) -> Any:
    """What scikit-learn knows of the run in progress; None outside of :func:`running`."""
    return getattr(estimator, "_callback_fit_ctx", None)


class _Printer:
    """A listener that prints lines, spread evenly over the steps; all of them for None."""

    def __init__(self, name: str, n_lines: int | None) -> None:
        self.name = name
        self.n_lines = n_lines
        self.planned: int | None = None

    def __call__(self, step: int, n_steps: int, loss: float) -> None:
        if self.planned is None:
            self.planned = n_steps
        if n_steps < self.planned:
            print(f"[{self.name}] ended after {step} of {self.planned} steps, loss {loss:.4g}")
            return
        lines = n_steps if self.n_lines is None else min(n_steps, self.n_lines)
        if step * lines // n_steps > (step - 1) * lines // n_steps:
            print(f"[{self.name}] step {step} of {n_steps}, loss {loss:.4g}")


class _Hooks:
    """A listener that tells callbacks: of the training, and of parts of about the same length."""

    def __init__(self, estimator: Any, context: Any) -> None:
        self.estimator = estimator
        self.context = context
        self.task: Any = None
        self.planned = 0

    def __call__(self, step: int, n_steps: int, loss: float) -> bool:
        if self.task is None:
            self.planned = n_steps
            self.task = self.context.subcontext("train", max_subtasks=min(n_steps, _N_HOOKS))
            self.task.call_on_fit_task_begin(estimator=self.estimator)
        stop = False
        n_parts = self.task.max_subtasks
        # Where training ends early, this step was told before.
        new = n_steps == self.planned
        if new and step * n_parts // n_steps > (step - 1) * n_parts // n_steps:
            part = self.task.subcontext("steps")
            part.call_on_fit_task_begin(estimator=self.estimator)
            stop = part.call_on_fit_task_end(estimator=self.estimator)
        if step == n_steps:
            self.task.call_on_fit_task_end(estimator=self.estimator)
        return stop
