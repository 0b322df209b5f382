import sys
from pathlib import Path

import skdpgen

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "skdpgen"
author = "skdpgen developers"
copyright = "skdpgen developers"
version = release = skdpgen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "repository_pages",
]
exclude_patterns = ["_build", "examples"]
default_role = "py:obj"

# Nothing is fetched, by the build or by who reads: no inventories of other projects, no scripts.
html_math_renderer = "mathml"

autosummary_generate = True
# Members are documented on the page of their class; a page for each would be empty.
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "gallery_style.ExampleOrder",
    "reset_modules": ("gallery_style.set_style",),
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 1e9,
}

html_theme = "pydata_sphinx_theme"
html_title = f"skdpgen {version}"
html_static_path = ["_static"]
html_css_files = ["skdpgen.css"]
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "skdpgen"},
    "navigation_depth": 3,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "use_edit_page_button": False,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# The first page has cards instead.
html_sidebars = {"index": []}
