# expect: line=5 mentions=class
import torch


class attention(torch.nn.Module):
    def forward(self, q, k, v):
        return (q @ k.mT).softmax(-1) @ v
