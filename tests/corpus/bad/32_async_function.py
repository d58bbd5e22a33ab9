# expect: kind=unsupported line=2 mentions=async
async def attention(q, k, v):
    return (q @ k.mT).softmax(-1) @ v
