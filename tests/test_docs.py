"""Every public name is on a page and says what it takes and gives; every page can be reached."""

import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path

import pytest
from numpydoc.validate import validate

import skdpgen

DOC = Path(__file__).parents[1] / "doc"
PACKAGES = ["skdpgen"] + [
    f"skdpgen.{module.name}"
    for module in pkgutil.iter_modules(skdpgen.__path__)
    if module.name in {"datasets", "exceptions"}
    or (module.ispkg and module.name not in {"_lazy", "cli"})
]
# What these are for is shown by the examples of what makes or takes them.
WITHOUT_EXAMPLE = {
    "batches": {"CodeBatch", "DomainBatch", "KeyColumn", "RowBatch", "SlicingBatch"},
    "results of functions": {
        "CopyResult",
        "EpsilonAudit",
        "FidelityResult",
        "Finding",
        "LedgerEntry",
        "MMDErrorBound",
        "MembershipResult",
        "PrivacyCheck",
        "Report",
        "SlicingRelease",
        "TSTRResult",
        "TrainingResult",
    },
    "read what save_model or save wrote": {
        "is_model",
        "load_model",
        "load_release",
        "synthesizer_class",
    },
    "made by a fit": {
        "CodeFourier",
        "DomainMechanism",
        "InteractionFeatureMap",
        "MixedEmbedding",
        "ProductMixture",
    },
    "base classes": {"Column", "Generator", "ReleaseSynthesizer"},
    "files, as read_table": {"read_structure", "scan_table", "write_table"},
    "training loops": {"MixtureSettings", "MixtureTarget", "fit_mixture", "train"},
}
# numpydoc's codes: a parameter isn't documented, is documented and unknown, is in another order;
# no section says what comes out; no docstring; sections in the wrong order.
PARAMETERS = {"PR01", "PR02", "PR03"}
ALL_CODES = PARAMETERS | {"GL06", "GL07", "GL08", "RT01", "YD01", "SS01"}


def public_objects():
    """Map each public object to the names that it has."""
    objects = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        names = getattr(module, "__all__", None) or [
            name for name, value in vars(module).items() if inspect.isclass(value)
        ]
        for name in names:
            value = getattr(module, name)
            objects.setdefault(id(value), (value, []))[1].append(f"{package}.{name}")
    return list(objects.values())


OBJECTS = public_objects()
CALLABLES = {names[0]: value for value, names in OBJECTS if callable(value)}


def targets(value, name):
    """List dotted names that numpydoc can import: the object, and its own public methods."""
    home = f"{value.__module__}.{value.__qualname__}"
    yield home, value
    if inspect.isclass(value):
        for attribute, member in vars(value).items():
            if not attribute.startswith("_") and (
                inspect.isfunction(member) or isinstance(member, (classmethod, staticmethod))
            ):
                yield f"{home}.{attribute}", getattr(value, attribute)


def listed():
    text = (DOC / "api" / "index.rst").read_text(encoding="utf-8")
    return [f"skdpgen.{name}" for name in re.findall(r"(?m)^   ([A-Za-z_.]+)$", text)]


def test_every_public_name_is_in_the_reference():
    missing = [names for _, names in OBJECTS if not set(names) & set(listed())]
    assert not missing


def test_the_reference_lists_nothing_else():
    known = {name for _, names in OBJECTS for name in names}
    assert set(listed()) <= known
    assert len(set(listed())) == len(listed())


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_docstrings_say_what_goes_in_and_comes_out(name):
    value = CALLABLES[name]
    problems = []
    for target, member in targets(value, name):
        codes = ALL_CODES
        if dataclasses.is_dataclass(member):
            # Results are described by their attributes; nobody constructs them.
            codes = codes - {"PR01"} if _describes_fields(member) else codes
        elif target.count(".") > value.__module__.count(".") + 1 and not _takes_something(member):
            # A method without parameters says in its first line what it gives.
            codes = codes - {"RT01"}
        problems += [
            f"{target}: {code} {message}"
            for code, message in validate(target)["errors"]
            if code in codes
        ]
    assert not problems


def _describes_fields(cls):
    described = re.findall(r"(?m)^ {0,4}(\w[\w, ]*?)(?: :|$)", inspect.cleandoc(cls.__doc__))
    words = {word for line in described for word in re.split(r",\s*", line)}
    fields = {field.name for field in dataclasses.fields(cls) if not field.name.startswith("_")}
    return fields <= words


def _takes_something(function):
    return bool(set(inspect.signature(function).parameters) - {"self", "cls"})


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_public_names_have_an_example(name):
    value = CALLABLES[name]
    excused = value.__name__ in set().union(*WITHOUT_EXAMPLE.values())
    error = inspect.isclass(value) and issubclass(value, Exception)
    assert (">>>" in (value.__doc__ or "")) != (excused or error)


def test_the_list_of_excuses_has_no_strangers():
    known = {value.__name__ for value in CALLABLES.values()}
    assert set().union(*WITHOUT_EXAMPLE.values()) <= known


def test_every_page_is_in_a_toctree():
    made = {"_build", "auto_examples", "examples", "generated"}
    pages = {
        path.relative_to(DOC).with_suffix("").as_posix()
        for path in DOC.rglob("*.rst")
        if not made & set(path.parts) and path.name != "sg_execution_times.rst"
    }
    reached = {"index"}
    for page in pages:
        text = (DOC / f"{page}.rst").read_text(encoding="utf-8")
        for entries in re.findall(r"(?m)^\.\. toctree::\n((?: {3}.*\n|\n)*)", text):
            for entry in re.findall(r"(?m)^ {3}(?!:)(\S.*)$", entries):
                target = re.sub(r".*<(.*)>", r"\1", entry)
                reached.add((Path(page).parent / target).as_posix())
    assert pages <= reached


def test_sharp_edges_say_what_is_seen_why_and_what_to_do():
    pages = [path for path in (DOC / "sharp_edges").glob("*.rst") if path.stem != "index"]
    assert len(pages) > 20
    for page in pages:
        heads = re.findall(r"(?m)^(.+)\n-+$", page.read_text(encoding="utf-8"))
        assert heads == ["Symptom", "Why", "What to do"], page.name


def test_markdown_becomes_restructured_text(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(DOC / "_ext"), *sys.path])
    convert = importlib.import_module("markdown_to_rst").convert
    markdown = (
        "# Title\n\nText with *em*, **bold**, `code_` and mu_d <= 2^16.\n\n"
        "- one\n  and more\n- two\n\nAnd\n\n    literal\n\n```math\nx^2\n```\n\n"
        "| a | b |\n|---|---|\n| 0.1-0.2 | `c` |\n"
    )
    assert convert(markdown).split("\n") == [
        "Title",
        "=====",
        "",
        r"Text with \ *em*\ , \ **bold**\ , \ ``code_``\  and mu\_d ≤ 2\ :sup:`16`\ .",
        "",
        "* one and more",
        "",
        "* two",
        "",
        "And",
        "",
        ".. code-block:: text",
        "",
        "   literal",
        "",
        ".. math::",
        "",
        "   x^2",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "   :class: result-table",
        "",
        "   * - a",
        "     - b",
        "   * - 0.1\N{NON-BREAKING HYPHEN}0.2",
        "     - ``c``",
        "",
    ]
