"""Each variant's mask and score against its specification's text, run by PyTorch on the CPU; counts against plain loops.

Skipped where PyTorch is missing; texts of ../shared/specs that are missing are skipped too. SPDX-License-Identifier: Apache-2.0"""
import math, os, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, variants
from variants import VARIANTS

try:
    import torch
    import peers
except ImportError:
    torch = None
SPECS = os.environ.get("CUBRIDGE_SPECS", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../../shared/specs"))


def inputs(B, Hq, Hk, S, D=16):
    torch.manual_seed(3)
    return [torch.randn(B, h, S, D, dtype=torch.float64) for h in (Hq, Hk, Hk)]


@unittest.skipUnless(torch, "no PyTorch")
class Texts(unittest.TestCase):
    def path(self, variant):
        import measure
        path = measure.path_of(variant.spec, SPECS)
        if "/" in path and not os.path.exists(path.partition(":")[0]):
            self.skipTest(f"{variant.spec} is missing")
        return path

    def test_the_reference_is_the_text(self):
        for name, variant in VARIANTS.items():
            for B, Hq, Hk, S in ((2, 4, 4, 96), (1, 4, 2, 1300), (3, 2, 1, 64)):
                with self.subTest(name, S=S):
                    q, k, v = inputs(B, Hq, Hk, S)
                    operands = variant.operands(S, B, Hq, "cpu")
                    expected = peers.eager_function(variant, self.path(variant), operands)(q, k, v)
                    for b in range(B):
                        for h in range(Hq):
                            got = variants.reference(variant, operands, q, k, v, b, h, torch.arange(S))
                            # some texts compute in float32
                            self.assertLess((got - expected[b, h]).abs().max().item(), 2e-5)
                    self.assertLess(variants.error_of(variant, operands, q, k, v, expected), 1e-5)

    def test_an_error_is_seen(self):
        for name, variant in VARIANTS.items():
            q, k, v = inputs(2, 2, 2, 64)
            operands = variant.operands(64, 2, 2, "cpu")
            other = VARIANTS["causal" if variant.mask is None else "full"]
            if variant.weights == "softmax":
                wrong = torch.stack([torch.stack([variants.reference(other, {}, q, k, v, b, h, torch.arange(64)) for h in range(2)])
                                     for b in range(2)])
                self.assertGreater(variants.error_of(variant, operands, q, k, v, wrong), 1e-2, name)

    def test_flex_is_the_reference(self):
        from torch.nn.attention.flex_attention import flex_attention
        for name, variant in VARIANTS.items():
            if "flex" not in cases.peers_of(name, "fp16"):
                continue
            with self.subTest(name):
                B, H, S = 3, 2, 256
                q, k, v = (t.float() for t in inputs(B, H, H, S))
                operands = variant.operands(S, B, H, "cpu")
                score, blocks, _ = peers.flex_parts(variant, operands, S, B, "cpu")
                got = flex_attention(q, k, v, score_mod=score, block_mask=blocks)
                self.assertLess(variants.error_of(variant, operands, q, k, v, got), 1e-5)


@unittest.skipUnless(torch, "no PyTorch")
class Counts(unittest.TestCase):
    def plain(self, variant, operands, S, B):
        if variant.mask is None:
            return B * S * S
        keep = variant.mask({n: x.tolist() if hasattr(x, "tolist") else x for n, x in operands.items()})
        return sum(bool(keep(b, 0, i, j)) for b in range(B) for i in range(S) for j in range(S))

    def test_against_loops(self):
        for name, variant in VARIANTS.items():
            for S, B in ((48, 2), (97, 3)):
                operands = variant.operands(S, B, 2, "cpu")
                self.assertEqual(variants.count_pairs(variant, operands, S, B, chunk=32), self.plain(variant, operands, S, B), name)

    def test_closed_forms(self):
        S, W, P = 4096, 1024, 1024
        want = {"full": S * S, "causal": S * (S + 1) // 2, "window_1024": W * (W + 1) // 2 + (S - W) * W,
                "prefix_lm": S * (S + 1) // 2 + P * (P - 1) // 2, "dilated_causal": sum(i // 4 + 1 for i in range(S)),
                "document": sum(n * (n + 1) // 2 for n in (2048, 1024, 512, 256, 256))}
        for name, pairs in want.items():
            variant = VARIANTS[name]
            self.assertEqual(variants.count_pairs(variant, variant.operands(S, 4, 32, "cpu"), S, 4), 4 * pairs, name)

    def test_documents_cover_their_shares(self):
        ids = variants.documents([4, 3, 3, 3, 3], 1024, "cpu").tolist()
        self.assertEqual([ids.count(n) for n in range(5)], [256, 192, 192, 192, 192])
        self.assertEqual(variants.documents([1] * 8, 64, "cpu").max().item(), 7)


if __name__ == "__main__":
    unittest.main()
