"""Writes the small torch files that tests/io/test_io_torch.c reads.

    python3 tests/parity/torch_files.py tests/golden

Run once with any torch; the results are kept in the repository.  Tensor k of a file
holds the numbers k*100, k*100+1, ... in row-major order, so that the test can tell
every element without a second file.
"""
import collections
import sys

import torch
from torch import nn


def numbers(k, *shape, dtype=torch.float32):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(n, dtype=torch.float64) + 100 * k).reshape(shape).to(dtype)


def main(folder):
    def save(thing, name, **options):
        torch.save(thing, f"{folder}/torch_{name}", **options)

    shared = numbers(3, 4, 6)
    state = collections.OrderedDict()
    state["f32"] = numbers(0, 2, 3)
    state["f16"] = numbers(1, 5, dtype=torch.float16)
    state["bf16"] = torch.arange(4, dtype=torch.bfloat16)
    state["transposed"] = shared.t()
    state["slice"] = shared[1:3, ::2]
    state["scalar"] = torch.tensor(7, dtype=torch.int64)
    state["empty"] = torch.zeros(0, 3)
    state["expanded"] = torch.tensor([5.0]).expand(3, 1)
    state["flag"] = torch.tensor([True, False])
    state["f64"] = numbers(2, 3, dtype=torch.float64)
    save(state, "state.pt")

    inner = collections.OrderedDict()
    inner["model.a.weight"] = numbers(0, 2, 2)
    inner["model.a.bias"] = numbers(1, 2)
    inner["sigreg.t"] = numbers(2, 17)
    inner["callbacks_probe.weight"] = numbers(3, 3)
    weight = nn.Parameter(numbers(4, 2))
    optimiser = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimiser.step()
    save({"epoch": 3, "global_step": 12, "pytorch-lightning_version": "2.0.0",
          "state_dict": inner, "loops": {"fit": {"done": 1.5, "n": None}},
          "optimizer_states": [optimiser.state_dict()],
          "hyper_parameters": {"size": torch.Size([1, 2]), "when": complex(1, 2)}},
         "lightning.ckpt")

    net = nn.Sequential(collections.OrderedDict(
        fc=nn.Linear(3, 2), norm=nn.BatchNorm1d(2), inner=nn.Sequential(nn.Linear(2, 1, bias=False))))
    net.register_buffer("kept", numbers(5, 2))
    net.register_buffer("transient", numbers(6, 2), persistent=False)
    with torch.no_grad():
        net.fc.weight.copy_(numbers(0, 2, 3))
        net.fc.bias.copy_(numbers(1, 2))
        net.inner[0].weight.copy_(numbers(2, 1, 2))
    save(net, "module.ckpt")
    save({"predictor": net, "epoch": 4, "predictor_optimizer": optimiser.state_dict()},
         "mapping.pth")
    save(numbers(0, 3, 2), "tensor.pth")
    save(collections.OrderedDict(a=numbers(0, 2)), "legacy.pt",
         _use_new_zipfile_serialization=False)


if __name__ == "__main__":
    main(sys.argv[1])
