"""Doctests are in the pages; programs and what the build makes are run by the build."""

collect_ignore_glob = [
    "_build/*",
    "_ext/*",
    "auto_examples/*",
    "benchmarks/generated/*",
    "examples/*",
    "privacy/generated/*",
]
