# FlexAttention mask functions that tests/bench times beside those of ../shared/specs; captured values are module globals.
# SPDX-License-Identifier: Apache-2.0
import torch

WINDOW = 1024
SINKS = 64
prefix_length = torch.empty(16)  # int [B]


def window_and_sinks(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((q_idx - kv_idx < WINDOW) | (kv_idx < SINKS))


def window_sinks_and_every_8th(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((q_idx - kv_idx < WINDOW) | (kv_idx < SINKS) | (kv_idx % 8 == 0))


def prefix_of_request(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) | (kv_idx < prefix_length[b])
