# The shape of a program: a prelude, then roles that run side by side.
@kernel(arch="sm_80", expert="none")
def copy(X: elem[N, D], Y: elem[N, D], gain: f32, *, BM=64, ST=3):
    Xs = alloc(shared, (ST, BM, D), elem)
    full_, free_ = barrier(1, n=ST), barrier(2, n=ST)

    def useful(n, count): return minimum(count - n * BM, BM) > 0

    with role("load", warps=1, registers=24):
        it = 0
        for w, n in enumerate(bind(cdiv(N, BM), order="plain")):
            u, s = divmod(it, ST)
            wait(free_[s], u - 1)
            copy_async(X[n * BM:(n + 1) * BM], Xs[s], signal=full_[s])
            it += 1
    with role("store", warps=2, registers=80) as g:
        it = 0
        for w, n in enumerate(bind(cdiv(N, BM), order="plain")):
            u, s = divmod(it, ST)
            wait(full_[s], u)
            if useful(n, N):
                Y[n * BM + g * (BM // 2):n * BM + (g + 1) * (BM // 2)] = Xs[s][g * (BM // 2):(g + 1) * (BM // 2)] * gain
            arrive(free_[s])
            it += 1
