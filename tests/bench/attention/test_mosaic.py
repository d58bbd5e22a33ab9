"""The JAX process's own arithmetic on the CPU: the library's reference stands for its kernel. Skipped where JAX is missing.

SPDX-License-Identifier: Apache-2.0"""
import os, sys, types, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import mosaic

try:
    import jax
    from jax.experimental.pallas.ops.gpu import attention_mgpu as library
except ImportError:
    jax = None


def case(variant="causal", dtype="fp16", S=128, Hq=4, Hk=2):
    return dict(variant=variant, dtype=dtype, B=256 // S, S=S, Hq=Hq, Hk=Hk, D=64)


def stand_in(function):
    return types.SimpleNamespace(TuningConfig=library.TuningConfig, __name__=library.__name__, __file__=library.__file__,
                                 attention=lambda q, k, v, config: function(q, k, v, config.causal).astype(q.dtype))


@unittest.skipUnless(jax, "no JAX")
class Errors(unittest.TestCase):
    def error(self, function, **which):
        one = case(**which)
        attention = mosaic.Attention(stand_in(function))
        attention.kernels["bf16"] = attention.module
        attention.prepare(one)
        return [attention.check(one, n)["error"] for n in range(mosaic.SETS)]

    def test_the_librarys_reference_is_right(self):
        for which in (dict(), dict(variant="full"), dict(S=256), dict(Hk=4), dict(Hk=1)):
            self.assertLess(max(self.error(library.attention_reference, **which)), 1e-3, which)
        self.assertLess(max(self.error(library.attention_reference, dtype="bf16")), 5e-3)

    def test_a_scale_too_many_and_a_mask_too_few_are_wrong(self):
        self.assertGreater(min(self.error(lambda q, k, v, causal: library.attention_reference(q * 0.125, k, v, causal))), 0.05)
        self.assertGreater(min(self.error(lambda q, k, v, causal: library.attention_reference(q, k, v, False))), 0.05)
        self.assertGreater(min(self.error(lambda q, k, v, causal: library.attention_reference(q, k[:, :, ::-1], v, causal))), 0.05)

    def test_scores_have_the_deviation_of_scaled_ones(self):
        q, k, _ = mosaic.Attention(library).inputs(case("full"))[0]
        s = jax.numpy.einsum("bihd,bjhd->bhij", *(t[:, :, :2].astype(jax.numpy.float32) for t in (q, k)))
        self.assertAlmostEqual(float(s.std()), 1.0, delta=0.1)


@unittest.skipUnless(jax, "no JAX")
class Configurations(unittest.TestCase):
    def test_both_types_lower_for_a_gpu(self):
        versions = types.SimpleNamespace(cuda_runtime_get_version=lambda: 13000)
        for dtype in ("fp16", "bf16"):
            kernel = mosaic.of_type(library, jax.numpy, dtype)
            kernel.cuda_versions = versions
            q = jax.ShapeDtypeStruct((1, 512, 2, 128), {"fp16": jax.numpy.float16, "bf16": jax.numpy.bfloat16}[dtype])
            for block_kv, steps in mosaic.Attention(library).candidates(case()):
                config = kernel.TuningConfig(block_q=64, block_kv=block_kv, max_concurrent_steps=steps, causal=True)
                run = jax.jit(lambda q, k, v: kernel.attention(q, k, v, config))
                self.assertIn("mosaic_gpu", run.trace(q, q, q).lower(lowering_platforms=("cuda",)).as_text())

    def test_slow_ones_are_not_tried_again(self):
        attention = mosaic.Attention(stand_in(library.attention_reference))
        took = iter([2.0, 2.0, 1.0, 1.0, 1.05, 1.05])
        attention.chunk = lambda run, count: next(took)
        self.assertIn("block_kv=64 max_concurrent_steps=4", attention.prepare(case())["config"])
        self.assertEqual(attention.candidates(case(S=256)), [(64, 4), (128, 3)])
        self.assertEqual(len(attention.candidates(case("full"))), 3)

    def test_what_is_made_ahead_is_not_made_again(self):
        attention = mosaic.Attention(stand_in(library.attention_reference))
        self.assertEqual(attention.ahead([case(), case("full"), case(S=256)], 60), dict(made=9, of=9))
        attention.jax = types.SimpleNamespace(numpy=jax.numpy, random=jax.random)  # without jit nothing is compiled
        attention.prepare(case("full"))
        self.assertEqual(len(attention.block(0.05)["times"]) >= 3, True)
        self.assertEqual(mosaic.Attention(library).ahead([case()], 0), dict(made=0, of=3))

    def test_a_configuration_that_fails_is_left_to_the_others(self):
        def fails(q, k, v, config):
            if config.block_kv == 128:
                raise ValueError("too large")
            return library.attention_reference(q, k, v, config.causal).astype(q.dtype)
        module = stand_in(None)
        module.attention = fails
        attention = mosaic.Attention(module)
        self.assertEqual(attention.ahead([case()], 60), dict(made=1, of=3))
        self.assertIn("block_kv=64", attention.prepare(case())["config"])
        module.attention = lambda *_: fails(*_[:3], types.SimpleNamespace(block_kv=128))
        with self.assertRaisesRegex(RuntimeError, "too large"):
            mosaic.Attention(module).prepare(case())


if __name__ == "__main__":
    unittest.main()
