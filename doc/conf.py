import skdpgen

project = "skdpgen"
author = "skdpgen developers"
copyright = "skdpgen developers"
version = release = skdpgen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_title = f"skdpgen {version}"

autosummary_generate = True
# Members are documented on the page of their class; a page for each would be empty.
numpydoc_show_class_members = False
default_role = "py:obj"
