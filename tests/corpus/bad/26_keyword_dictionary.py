# expect: kind=unsupported line=2 mentions=**
def attention(q, k, v, **options):
    return (q @ k.mT * options["scale"]).softmax(-1) @ v
