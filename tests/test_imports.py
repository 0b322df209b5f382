"""``import skdpgen`` is light, and every public name is where the package says it is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import skdpgen
from skdpgen._lazy import attach

HEAVY = ("autodp", "narwhals", "numpy", "opendp", "pandas", "scipy", "sklearn", "torch")
PACKAGES = [
    ".".join(path.parent.relative_to(Path(skdpgen.__file__).parents[1]).parts)
    for path in sorted(Path(skdpgen.__file__).parent.rglob("__init__.py"))
]


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_imports_nothing_heavy(package):
    loaded = run(f"import sys, {package}\nprint(*{{m for m in {HEAVY} if m in sys.modules}})")
    assert loaded == ""


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_resolves(package):
    module = __import__(package, fromlist=["__all__"])
    for name in module.__all__:
        assert getattr(module, name) is not None
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_see_the_same_names(package):
    source = Path(*package.split(".")) / "__init__.py"
    tree = ast.parse((Path(skdpgen.__file__).parents[1] / source).read_text(encoding="utf-8"))
    typed = {
        alias.asname
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    assert typed == set(__import__(package, fromlist=["__all__"]).__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"'skdpgen' has no attribute 'nothing'"):
        skdpgen.nothing  # noqa: B018


def test_a_name_is_looked_up_once():
    getattr_, _, _ = attach("skdpgen", {"EncodedLayout": "layout"})
    assert getattr_("EncodedLayout") is sys.modules["skdpgen"].EncodedLayout
    del skdpgen.EncodedLayout
