"""Fixtures shared by all tests."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

# Test workers share the cores: numerical libraries must not start threads of their own on top.
# It has to stand here, before the first test module imports numpy or torch.
os.environ.setdefault("OMP_NUM_THREADS", "1")

_LOADER = Path(__file__).parents[2] / "shared" / "data" / "load.py"


@pytest.fixture(scope="session")
def shared_data() -> ModuleType:
    """The ``load`` module of the data folder beside the repository; skips where there is none."""
    if not _LOADER.exists():
        pytest.skip("the shared data folder is not there")
    spec = importlib.util.spec_from_file_location("shared_data_load", _LOADER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
