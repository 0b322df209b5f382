"""Formulas as MathML, which browsers show without a script from another server."""

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _convert(node, as_block):
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logger.warning("a formula that MathML can't hold: %s", error, location=node)
        return ""


def _inline(translator, node):
    translator.body.append(_convert(node, as_block=False))
    raise SkipNode


def _block(translator, node):
    # A block wider than the page gets a scroll bar of its own.
    translator.body.append(f'<div class="math-block">{_convert(node, as_block=True)}</div>')
    raise SkipNode


def setup(app):
    """Register the renderer under the name that ``html_math_renderer`` selects."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
