"""Processes that work before anything is timed. Skipped where PyTorch is missing. SPDX-License-Identifier: Apache-2.0"""
import os, sys, tempfile, time, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from ahead import Ahead

try:
    import torch
except ImportError:
    torch = None


@unittest.skipUnless(torch, "no PyTorch")
class Processes(unittest.TestCase):
    def test_each_is_done_once_and_failures_stop_nobody(self):
        with tempfile.TemporaryDirectory() as folder:
            def work(n):
                if n == 3:
                    raise RuntimeError("this one fails")
                with open(os.path.join(folder, str(n)), "a") as f:
                    f.write("x")
            ahead = Ahead(range(8), 3, work)
            self.assertEqual(ahead.wait(60), 3)
            self.assertEqual(sorted(os.listdir(folder)), [str(n) for n in range(8) if n != 3])
            self.assertTrue(all(os.path.getsize(os.path.join(folder, n)) == 1 for n in os.listdir(folder)))

    def test_who_is_late_is_stopped(self):
        ahead, begin = Ahead([60], 4, time.sleep), time.monotonic()
        self.assertEqual((len(ahead.processes), ahead.wait(0.2)), (1, 0))
        self.assertLess(time.monotonic() - begin, 20)
        self.assertFalse(ahead.processes[0].is_alive())

    def test_nothing_to_do(self):
        self.assertEqual(Ahead([], 4).processes, [])
        self.assertEqual(Ahead([1], 0).processes, [])


if __name__ == "__main__":
    unittest.main()
