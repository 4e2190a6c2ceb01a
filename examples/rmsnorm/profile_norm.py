"""Profile one way to compute RMSNorm, with nothing but torch.

Ways to run it::

    python profile_norm.py op-by-op          # on the CPU
    python profile_norm.py fused neuron      # on a Trainium
    trnscope run --device sim:trn2 profile_norm.py compiled neuron    # on a simulated one
"""

import sys

import torch
from norms import Fused, OpByOp, compiled
from torch.profiler import ProfilerActivity, profile

ROWS, WIDTH, CALLS = 2048, 2048, 10

way = sys.argv[1] if len(sys.argv) > 1 else "op-by-op"
device = sys.argv[2] if len(sys.argv) > 2 else "cpu"

if way == "compiled":
    norm = compiled(WIDTH, backend="neuron" if device == "neuron" else "inductor")
else:
    norm = {"op-by-op": OpByOp, "fused": Fused}[way](WIDTH)
norm = norm.to(device)
x = torch.randn(ROWS, WIDTH, device=device)

activities = [ProfilerActivity.CPU]
if device != "cpu":
    activities.append(ProfilerActivity.CUDA if device == "cuda" else ProfilerActivity.PrivateUse1)

with torch.no_grad():
    for _ in range(3):  # compile, load and settle before anything is measured
        norm(x)
    with profile(activities=activities) as prof:
        for _ in range(CALLS):
            y = norm(x)
        y.sum().item()  # wait for the device

print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=12))
