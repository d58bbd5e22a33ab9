"""Blocks of launches, and what the GPU did meanwhile. SPDX-License-Identifier: Apache-2.0"""
import statistics, subprocess, threading, time

# At the power limit the clock swings by 5% with a period of about 1.05 s (an H200, launches back to back for 6 s), so blocks
# of half a second without a pause showed whoever came second 4% slower: the same kernel beside itself, too. After a rest the
# swing has not begun, and the first 0.05 s run at the highest clock. A long run averages 3% above these times.
REST, SETTLE = 0.2, 0.15


def quartiles(times):
    return statistics.quantiles(times, n=4) if len(times) > 1 else [times[0]] * 3


def spread(times):
    """Middle half of the launches over the median."""
    low, middle, high = quartiles(times)
    return round((high - low) / middle, 4)


class Gauge:
    """SM clock and power every 20 ms, between start and stop."""

    def __init__(self):
        try:
            import pynvml
            pynvml.nvmlInit()
            self.nvml, self.device = pynvml, pynvml.nvmlDeviceGetHandleByIndex(0)
        except Exception:  # no NVML: one reading by the command a block
            self.nvml = None
        self.thread = None

    def _read(self):
        if self.nvml:
            return (self.nvml.nvmlDeviceGetClockInfo(self.device, self.nvml.NVML_CLOCK_SM),
                    self.nvml.nvmlDeviceGetPowerUsage(self.device) / 1000)
        done = subprocess.run(["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits", "-i", "0"],
                              capture_output=True, text=True)
        return tuple(float(x) for x in done.stdout.split(","))

    def start(self):
        self.readings, self.stopping = [], threading.Event()

        def watch():
            while not self.stopping.is_set():
                try:
                    self.readings.append(self._read())
                except Exception:
                    return
                self.stopping.wait(0.02)

        self.thread = threading.Thread(target=watch, daemon=True)
        self.thread.start()

    def stop(self):
        """Medians of the later half, where the load is steady."""
        self.stopping.set()
        self.thread.join()
        later = self.readings[len(self.readings) // 2:]
        if not later:
            return {}
        return dict(mhz=round(statistics.median(r[0] for r in later)), watts=round(statistics.median(r[1] for r in later)))


class Block:
    """Times of launches in microseconds, and clocks."""

    def __init__(self, times, clocks, host_us):
        self.times, self.clocks, self.host_us = times, clocks, host_us
        self.median = statistics.median(times)


def block(launches, seconds, gauge):
    """After a rest, launches back to back, through the input sets in turn, the first SETTLE seconds not counted: the clock is
    the one that the power limit leaves, in the same phase for whatever is timed."""
    import torch

    def run(count, first=0):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
        begin = time.perf_counter()
        events[0].record()
        for n in range(count):
            launches[(first + n) % len(launches)]()
            events[n + 1].record()
        host = (time.perf_counter() - begin) / count * 1e6
        torch.cuda.synchronize()
        return [events[n].elapsed_time(events[n + 1]) * 1e3 for n in range(count)], host

    time.sleep(REST)
    run(2)
    one = max(1.0, statistics.median(run(3)[0])) * 1e-6
    settle = min(SETTLE, 0.6 * seconds)
    run(min(5000, max(2, int(settle / one))))
    gauge.start()
    times, host = run(min(2000, max(6, int((seconds - settle) / one))))
    return Block(times, gauge.stop(), round(host, 1))
