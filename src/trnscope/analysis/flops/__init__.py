"""FLOPs and bytes of one op from its recorded arguments; one file an op family.

A FLOP is one floating-point addition, multiplication, division, comparison or function value
(``exp``, ``sqrt``); a multiply-add counts two. Bytes are compulsory traffic: each element of
each input read once, each element of each output written once. What no formula covers is
:class:`Uncounted`, never zero.
"""

from trnscope.analysis.flops.call import OpCall, Tensor, parse_call
from trnscope.analysis.flops.formulas import count, has_formula, is_wrapper
from trnscope.analysis.flops.no_work import is_without_work
from trnscope.analysis.flops.work import MATRIX_FAMILIES, Family, Uncounted, Work

__all__ = [
    "MATRIX_FAMILIES",
    "Family",
    "OpCall",
    "Tensor",
    "Uncounted",
    "Work",
    "count",
    "has_formula",
    "is_without_work",
    "is_wrapper",
    "parse_call",
]
