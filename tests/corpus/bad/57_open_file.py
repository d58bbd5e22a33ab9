# expect: line=6 mentions=open
import torch


def attention(q, k, v):
    bias = float(open("bias.txt").read())
    return (q @ k.mT + bias).softmax(-1) @ v
