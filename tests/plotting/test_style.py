"""Labels, and matplotlib where it is and where it isn't."""

import subprocess
import sys

import matplotlib
import pytest

from skdpgen.plotting import LossDisplay, _style


def test_long_names_keep_both_ends():
    text = _style.short("a" * 30 + "z" * 30, 21)
    assert text == "a" * 10 + "\u2026" + "z" * 10
    assert _style.short("new\nline\tand  more") == "new line and more"
    assert _style.short("") == "(empty)"
    assert _style.short(None) == "None"
    assert _style.short("\x00z") == "\ufffdz"


def test_names_that_would_look_alike_are_numbered():
    names = [f"{'x' * 30}{i}{'y' * 30}" for i in range(12)] + ["other"]
    shown = _style.apart(names, 20)
    assert len(set(shown)) == 13
    assert shown[-1] == "other"
    assert max(map(len, shown)) <= 20


def test_pictures_leave_the_settings_of_the_user_alone():
    before = dict(matplotlib.rcParams)
    LossDisplay({"a": ([2.0, 1.0], 0.5)}).plot()
    assert dict(matplotlib.rcParams) == before


def test_nothing_is_imported_before_a_picture_is_drawn():
    code = (
        "import sys, skdpgen.plotting as p; p.LossDisplay({'a': ([1.0], 0.0)}).summary(); "
        "p.MarginalsDisplay, p.AssociationDisplay, p.TSTRDisplay, p.PrivacyCurveDisplay; "
        "sys.exit('matplotlib' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install skdpgen\[plot\]"):
        LossDisplay({"a": ([1.0], 0.0)}).plot()


def test_fonts_are_not_small():
    sizes = [v for k, v in _style._SETTINGS.items() if k.endswith("size")]
    assert len(sizes) == 7
    assert min(sizes) >= 9


@pytest.mark.parametrize(
    "pair", [(_style.REAL, _style.SYNTHETIC), (_style.SYNTHETIC, _style.MUTED)]
)
def test_colors_differ_in_lightness_or_between_blue_and_yellow(pair):
    # What people who see no red and green still tell apart: lightness, and blue against yellow.
    def seen(color):
        r, g, b = matplotlib.colors.to_rgb(color)
        light = 0.2126 * r + 0.7152 * g + 0.0722 * b
        return light, b - (r + g) / 2

    (light, blue), (light2, blue2) = map(seen, pair)
    assert abs(light - light2) > 0.25 or abs(blue - blue2) > 0.5
