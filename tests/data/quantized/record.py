"""Records torch's outputs of the digits models with their values as integers; these are expected outputs.

    python tests/data/quantized/record.py          (torch, executorch's Python for quantized_decomposed,
                                                    scikit-learn)

MODEL_calibration.npy contains images that the models were trained with, and none of the test images.

Scales are torch's: MinMaxObserver over all test images, PerChannelMinMaxObserver for weights, and for
groups of 32 their largest magnitude over 7.5 in bfloat16.  The graph is written here by hand, with a
quantize and dequantize around each convolution and product with its clamp, and one scale around a pool.
"""
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.ao.quantization import MinMaxObserver, PerChannelMinMaxObserver
import torch.ao.quantization.fx._decomposed  # noqa: F401  registers quantized_decomposed

HERE = pathlib.Path(__file__).parent
IMAGES, CALIBRATION = 24, 64
Q = torch.ops.quantized_decomposed


class Static:
    """Pairs with scales of samples: once to see, then to compute."""

    def __init__(self):
        self.observer, self.seeing = {}, True

    def pair(self, name, x):
        if self.seeing:
            make = MinMaxObserver(dtype=torch.qint8, qscheme=torch.per_tensor_affine,
                                  quant_min=-128, quant_max=127)
            self.observer.setdefault(name, make)(x)
            return x
        scale, zero = self.observer[name].calculate_qparams()
        q = Q.quantize_per_tensor(x, float(scale), int(zero), -128, 127, torch.int8)
        return Q.dequantize_per_tensor(q, float(scale), int(zero), -128, 127, torch.int8)

    def weight(self, w):
        return w if self.seeing else channels(w)


class Dynamic:
    def pair(self, name, x):
        if name == "out" or x.dim() != 2:
            return x
        s, z = Q.choose_qparams_per_token_asymmetric(x, torch.int8)
        q = Q.quantize_per_token(x, s, z, -128, 127, torch.int8)
        return Q.dequantize_per_token(q, s, z, -128, 127, torch.int8, torch.float32)

    def weight(self, w):
        return channels(w)


class Weights:
    def pair(self, name, x):
        return x

    def weight(self, w):
        return channels(w)


class Groups(Weights):
    def weight(self, w):
        rows = w.reshape(w.shape[0], -1)
        if rows.shape[1] % 32:
            return channels(w)
        g = rows.reshape(-1, 32)
        s = (g.abs().amax(1) / 7.5).to(torch.bfloat16).to(torch.float32)
        return (torch.clamp(torch.round(g / s[:, None]), -8, 7) * s[:, None]).reshape(w.shape)


def channels(w):
    o = PerChannelMinMaxObserver(ch_axis=0, dtype=torch.qint8, quant_min=-127, quant_max=127,
                                 qscheme=torch.per_channel_symmetric, eps=2 ** -24)
    o(w)
    s, z = o.calculate_qparams()
    q = Q.quantize_per_channel(w, s, z, 0, -127, 127, torch.int8)
    return Q.dequantize_per_channel(q, s, z, 0, -127, 127, torch.int8)


def folded(p, conv, norm):
    by = p[norm + ".weight"] / torch.sqrt(p[norm + ".running_var"] + 1e-5)
    b = p.get(conv + ".bias", torch.zeros_like(by))
    return p[conv + ".weight"] * by[:, None, None, None], \
        (b - p[norm + ".running_mean"]) * by + p[norm + ".bias"]


def mlp(p, h, x):
    x = h.pair("in", x)
    for name in ("0", "3"):
        x = F.relu(F.linear(x, h.weight(p[name + ".weight"]), p[name + ".bias"]))
        x = h.pair(name, x)
    return h.pair("out", F.linear(x, h.weight(p["5.weight"]), p["5.bias"]))


def cnn(p, h, x):
    x = h.pair("in", x)
    for name in ("0", "1", "3"):
        w, b = folded(p, name + ".0", name + ".1")
        x = h.pair(name, F.relu(F.conv2d(x, h.weight(w), b, padding=1)))
        if name == "1":
            x = F.max_pool2d(x, 2)
    x = h.pair("mean", x.mean((2, 3)))
    return h.pair("out", F.linear(x, h.weight(p["6.weight"]), p["6.bias"]))


def calibration():
    """Of the split that tests/conformance/export_zoo.py trains with, each image a sample of its own."""
    x, y = load_digits(return_X_y=True)
    x, _, y, _ = train_test_split((x / 16).astype(np.float32), y, test_size=360, random_state=0, stratify=y)
    np.save(HERE / "mlp_digits_calibration.npy", x[:CALIBRATION, None])
    np.save(HERE / "cnn_digits_calibration.npy", x[:CALIBRATION].reshape(-1, 1, 8, 8))


def main():
    for name, model in (("mlp_digits", mlp), ("cnn_digits", cnn)):
        ep = torch.export.load(HERE.parent / name / "model.pt2")
        p = {**ep.state_dict, **dict(ep.named_buffers())}
        p = {k: v.detach() for k, v in p.items()}
        x = torch.from_numpy(np.load(HERE.parent / name / "extra_test_x.npy"))
        for recipe, h in (("int8", Static()), ("int8-dynamic", Dynamic()),
                          ("int8-weight", Weights()), ("int4-group32", Groups())):
            with torch.no_grad():
                if recipe == "int8":
                    model(p, h, x)
                    h.seeing = False
                y = torch.cat([model(p, h, x[i:i + 1]) for i in range(IMAGES)])
            np.save(HERE / f"{name}_{recipe}.npy", y.numpy())
        np.save(HERE / f"{name}_images.npy", x[:IMAGES].numpy())


main()
calibration()
