"""Ops that touch no element: views, allocations and questions about a tensor."""

from __future__ import annotations

_VIEWS = """
alias as_strided chunk detach detach_ diagonal expand expand_as flatten lift_fresh movedim narrow
permute ravel real reshape reshape_as resolve_conj resolve_neg select set_ slice split
split_with_sizes squeeze squeeze_ swapaxes swapdims t t_ transpose transpose_ unbind unflatten
unfold unsafe_split unsqueeze unsqueeze_ view view_as view_as_complex view_as_real _reshape_alias
_unsafe_view
"""
_ALLOCATIONS = """
empty empty_like empty_permuted empty_strided new_empty new_empty_strided resize_ resize_as_
"""
_QUESTIONS = "is_nonzero item result_type stride size numel _has_compatible_shallow_copy_type"

_NAMES = frozenset(f"aten::{name}" for name in f"{_VIEWS} {_ALLOCATIONS} {_QUESTIONS}".split())


def is_without_work(name: str) -> bool:
    """Whether an op moves and computes nothing itself."""
    return name in _NAMES
