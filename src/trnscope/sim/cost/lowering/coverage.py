"""Which ATen ops have a lowering, which are views, and which fall back to the CPU.

The list of fallbacks is this model's own: ops whose result has a size that depends on data, and
decompositions of matrices. The vendor publishes no list for its eager mode.
"""

from __future__ import annotations

from trnscope.sim.cost.lowering.work import names

VIEWS = frozenset(
    names(
        "view _unsafe_view reshape _reshape_alias as_strided t transpose permute expand"
        " expand_as squeeze unsqueeze select slice narrow split split_with_sizes unbind chunk"
        " detach alias flatten unflatten movedim swapaxes diagonal view_as real imag"
        " view_as_real view_as_complex empty empty_like empty_strided new_empty"
        " new_empty_strided set_ set resize resize_ lift is_same_size size stride _conj"
        " _neg_view unfold is_nonzero unsafe_split unsafe_chunk split_copy record_stream"
        " wait_tensor"
    )
)
"""No execution: only shapes, strides or an allocation change."""

ON_CPU = frozenset(
    names(
        "nonzero unique unique2 _unique _unique2 unique_consecutive unique_dim masked_select"
        " bincount histc histogram searchsorted bucketize _linalg_svd linalg_svd linalg_eigh"
        " _linalg_eigh linalg_eig linalg_qr linalg_cholesky cholesky linalg_cholesky_ex"
        " linalg_inv linalg_inv_ex linalg_solve _linalg_solve_ex linalg_lu_factor"
        " linalg_lu_factor_ex lu_solve linalg_lstsq linalg_det _linalg_det linalg_slogdet"
        " _linalg_slogdet triangular_solve linalg_solve_triangular _fft_c2c _fft_r2c _fft_c2r"
        " _cdist_forward _cdist_backward _ctc_loss _ctc_loss_backward mode _pdist_forward"
        " lgamma digamma polygamma igamma igammac i0 special_i1 special_zeta"
        " _thnn_fused_lstm_cell _thnn_fused_gru_cell grid_sampler_2d grid_sampler_3d"
    )
)
"""Computed by the host, with a copy there and back."""


def base_name(name: str) -> str:
    """``aten::add_`` and ``aten::add.Tensor`` as ``add``."""
    short = name.split("::")[-1].split(".")[0]
    if short.endswith("__") or not short.endswith("_"):
        return short
    return short[:-1]
