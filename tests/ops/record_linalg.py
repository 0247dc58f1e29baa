#!/usr/bin/env python3
"""Records linalg.bin as record.py records the other families: record_linalg.py FOLDER

Factors of matrices, triangular systems, eigenvalues, singular values and Fourier transforms. Eigenvectors and singular
vectors have the signs that their algorithm gives them, so only those of diagonal matrices are here;
tests/conformance/variants.py multiplies the others out.
"""
import sys

import torch

import record as base
from record import Writer, rand, record

aten = torch.ops.aten


def definite(*shape, dtype=torch.float32):
    x = rand(*shape, dtype=dtype)
    return x @ x.mT + torch.eye(shape[-1], dtype=dtype)


def exact(n, upper=False):
    """A triangle of small numbers, whose diagonal divides without rounding."""
    x = base.rng.integers(-2, 3, (n, n))
    t = torch.from_numpy(x).double().tril(-1) + torch.diag(torch.tensor([1.0, 2.0, 4.0, 0.5, 2.0])[:n].double())
    return t.mT.contiguous() if upper else t


def plain(t):
    return t.contiguous()


def lu(a, pivot, checks):
    return tuple(map(plain, aten.linalg_lu_factor_ex(a, pivot=pivot, check_errors=checks)))


def cholesky(a, upper, checks):
    return tuple(map(plain, aten.linalg_cholesky_ex(a, upper=upper, check_errors=checks)))


def solve(a, b, upper, left, ones):
    return plain(aten.linalg_solve_triangular(a, b, upper=upper, left=left, unitriangular=ones))


def factors(w):
    for shape in ((4, 4), (5, 3), (3, 5), (2, 3, 6, 6), (1, 1), (0, 0), (2, 0), (0, 3), (0, 3, 3), (2, 3, 0)):
        x = rand(*shape)
        record(w, "aten::linalg_lu_factor_ex.out", lu, x, True, False)
        if shape != (2, 3, 0):
            data, pivots, _ = lu(x, True, False)
            for whole in (True, False):
                record(w, "aten::lu_unpack.out", aten.lu_unpack, data, pivots, whole, True)
        record(w, "aten::geqrf.a", lambda a: tuple(map(plain, aten.geqrf(a))), x)
    for x in (torch.tensor([[1.0, 2.0], [2.0, 4.0]]), torch.zeros(3, 3), exact(5) @ exact(5, True), torch.tensor([[0.0, 1.0], [1.0, 0.0]])):
        record(w, "aten::linalg_lu_factor_ex.out", lu, x, True, False)
    record(w, "aten::geqrf.a", lambda a: tuple(map(plain, aten.geqrf(a))), torch.tensor([[3.0], [4.0]], dtype=torch.float64))
    record(w, "aten::geqrf.a", lambda a: tuple(map(plain, aten.geqrf(a))), torch.tensor([[-1.0, 2.0], [0.0, 3.0]]))
    low = exact(5)
    for upper in (False, True):
        for x in (definite(4, 4), definite(2, 3, 5, 5), definite(1, 1), rand(0, 0), rand(0, 2, 2), low @ low.mT):
            record(w, "aten::linalg_cholesky_ex.L", cholesky, x, upper, False)


def solved(w):
    for upper in (False, True):
        for ones in (False, True):
            a = definite(2, 4, 4) + 2 * torch.eye(4)
            record(w, "aten::linalg_solve_triangular.out", solve, a, rand(2, 4, 3), upper, True, ones)
            record(w, "aten::linalg_solve_triangular.out", solve, a, rand(2, 3, 4), upper, False, ones)
            a = exact(5, upper)
            for left in (False, True):
                b = rand(5, 5, dtype=torch.int64).double()
                record(w, "aten::linalg_solve_triangular.out", solve, a, b, upper, left, ones)
    for a, b in ((rand(0, 0), rand(0, 2)), (rand(3, 3), rand(3, 0)), (rand(0, 2, 2), rand(0, 2, 1))):
        record(w, "aten::linalg_solve_triangular.out", solve, a, b, True, True, False)
    for shape in ((5, 3), (4, 4), (2, 6, 2), (3, 0), (1, 1)):
        a, tau = map(plain, aten.geqrf(rand(*shape)))
        n = shape[-2]
        for turned in (False, True):
            x = rand(*shape[:-2], n, 2)
            record(w, "aten::ormqr.out", lambda *args: plain(aten.ormqr(*args)), a, tau, x, True, turned)
            record(w, "aten::ormqr.out", lambda *args: plain(aten.ormqr(*args)), a, tau, plain(x.mT), False, turned)


def values(w):
    for dtype in (torch.float32, torch.float64):
        diagonal = torch.diag(torch.tensor([2.0, -4.0, 0.5], dtype=dtype))
        for x in (diagonal, diagonal.abs().expand(2, 3, 3).contiguous(), torch.zeros(2, 2, dtype=dtype), rand(0, 0, dtype=dtype), rand(2, 0, 0, dtype=dtype)):
            for triangle in "LU":
                record(w, "aten::linalg_eigh.eigvals", lambda a, t: tuple(map(plain, aten.linalg_eigh(a, t))), x, triangle)
        for x in (diagonal.abs(), torch.zeros(3, 3, dtype=dtype), rand(0, 3, dtype=dtype), rand(3, 0, dtype=dtype), rand(2, 0, 0, dtype=dtype)):
            for full in (False, True):
                record(w, "aten::linalg_svd.U", lambda a, f, d: tuple(map(plain, aten.linalg_svd(a, f))), x, full, None)


def transforms(w):
    """The result and the working memory are arguments, as nothing can compare the latter; unit tests compare the former."""
    for shape, axis in (((3, 20), 1), ((2, 6, 4), 1), ((17,), 0), ((40, 2), 0)):
        x = rand(*shape)
        pairs = torch.zeros(torch.view_as_real(torch.fft.rfft(x, dim=axis)).shape)
        w.case("aten::_fft_r2c.out", (x, [axis], 0, True, pairs, torch.zeros(1600)), (), ())


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: record_linalg.py FOLDER")
    torch.set_num_threads(1)
    base.rng = base.np.random.default_rng(7)
    w = Writer(sys.argv[1] + "/linalg.bin")
    for part in (factors, solved, values, transforms):
        part(w)


main()
