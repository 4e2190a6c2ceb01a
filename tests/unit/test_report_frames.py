"""Which frames of a stack a table of ops shows."""

from __future__ import annotations

from trnscope.report.frames import is_users, shown_frames

TORCH = tuple(f"torch/nn/modules/module.py({line}): _call_impl" for line in range(8))
OURS = "/opt/venv/lib/python3.12/site-packages/trnscope/capture/hooks.py(9): _called"


def test_the_recorders_own_frames_are_neither_shown_nor_counted() -> None:
    stack = ("train.py(3): step", OURS, "src/trnscope/capture/session.py(1): f", TORCH[0])
    assert shown_frames(stack, 8) == (("train.py(3): step", TORCH[0]), 0)


def test_a_long_stack_keeps_the_users_frames_in_their_order() -> None:
    stack = (*TORCH, "model.py(5): forward", "/home/me/train.py(3): <module>", "runpy.py(1): run")
    frames, num_hidden = shown_frames(stack, 4)
    assert frames == (*TORCH[:2], "model.py(5): forward", "/home/me/train.py(3): <module>")
    assert num_hidden == 7


def test_a_frame_without_a_file_of_the_user_is_no_users() -> None:
    assert is_users("train.py(3): step")
    assert is_users("src/torchy/model.py(3): f")
    for frame in ("<built-in method linear>", "nn.Module: Linear_0", "threading.py(1): run", OURS):
        assert not is_users(frame)
