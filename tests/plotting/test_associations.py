"""Heat maps: three squares on one scale of colors, with names that can be read."""

import numpy as np
import pandas as pd
import pytest

from skdpgen.evaluation import fidelity
from skdpgen.plotting import AssociationDisplay


def random_square(n, seed):
    values = np.random.default_rng(seed).random((n, n))
    values = np.minimum(values, values.T)
    np.fill_diagonal(values, 1)
    return values


def test_the_numbers_are_those_of_fidelity():
    rng = np.random.default_rng(0)
    real = pd.DataFrame({"a": rng.normal(size=300)})
    real["b"] = real["a"] + 0.1 * rng.normal(size=300)
    real["k"] = 1
    synthetic = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300), "k": 1})
    result = fidelity(synthetic, real)
    display = AssociationDisplay.from_fidelity(result).plot()
    assert display.columns == ("a", "b", "k")
    lost = display.difference[0, 1]
    assert lost == pytest.approx(
        result.associations["synthetic"].loc["a", "b"] - result.associations["real"].loc["a", "b"]
    )
    assert lost < -0.8
    shown = [ax.images[0].get_array() for ax in display.axes_]
    assert shown[2][0, 1] == pytest.approx(lost)
    assert all(np.ma.getmaskarray(values).diagonal().all() for values in shown)
    assert np.ma.getmaskarray(shown[0])[0, 2], "a constant column has no association"
    assert display.figure_.get_suptitle().startswith(
        "The association that changed most is that of a and b: 1.00 in the real rows"
    )


def test_one_scale_of_colors_for_all_three():
    display = AssociationDisplay(list("abcd"), random_square(4, 0), random_square(4, 1)).plot()
    limits = {ax.images[0].get_clim() for ax in display.axes_}
    assert len(limits) == 1
    ((low, high),) = limits
    assert low == -high
    assert np.abs(display.difference).max() <= high <= 1
    assert len({ax.images[0].get_cmap().name for ax in display.axes_}) == 1
    weak = AssociationDisplay(list("ab"), [[1, 0.01], [0.01, 1]], np.eye(2)).plot()
    assert weak.axes_[0].images[0].get_clim() == (-0.2, 0.2)


@pytest.mark.parametrize("n", [1, 9, 17, 60])
def test_names_can_be_read(n, overlaps):
    names = [f"a_column_with_a_name_{i}" for i in range(n)]
    display = AssociationDisplay(names, random_square(n, 0), random_square(n, 1)).plot()
    assert overlaps(display.figure_) == []
    shown = [t.get_text() for t in display.axes_[0].get_yticklabels()]
    assert len(set(shown)) == n


def test_nothing_to_draw():
    undefined = np.full((2, 2), np.nan)
    display = AssociationDisplay(["a", "b"], undefined, undefined).plot()
    assert display.summary() == "No two columns have an association in both tables."
    assert AssociationDisplay([], np.zeros((0, 0)), np.zeros((0, 0))).plot().figure_ is not None
    same = random_square(3, 0)
    assert "No association" in AssociationDisplay(list("abc"), same, same).summary()
