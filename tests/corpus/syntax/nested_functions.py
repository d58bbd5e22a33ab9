@outer
@outer.inner(1, arch="sm_90a")
def f(a: elem[B, Hq, Sq, D], b: f32[...], *, n=128):
    def g(x):
        def h(): return x
        return h

    @wraps(g)
    def k(): pass
    return g, k
def after(): ...
