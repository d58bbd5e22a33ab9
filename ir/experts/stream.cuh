// Work items as one stream: who draws them, and how what was decided reaches the other warps. After hopper.cuh.
// SPDX-License-Identifier: Apache-2.0
// ---- Items by a counter, which the last CTA leaves at 0. Head by head, or in sections of heads whose K and V stay in
// the L2 cache together, the last rows first: they are the longest where a mask cuts the future off.
enum Order { by_head, heaviest_first };
template <int COLUMNS> struct Draw { // of K and of V together. Rows of queries fit memory: items fit 31 bits
    const cb_args& args; int* const ticket; const int rows, count; u32 items, section, at; bool first;
    MEMBER Draw(const cb_args& a, int* t, int BM, Order order, int other = 0)
        : args(a), ticket(t), rows(cdiv(a.max_q, BM)), count(other > 0 ? other : a.heads_q), items((u32)a.requests * count * rows), section(1), at(blockIdx.x), first(true) {
        if (order == heaviest_first) {
            const i64 bytes = max((i64)a.max_kv * COLUMNS * 2, (i64)1);
            section = (u32)min((i64)a.requests * count, max(((i64)32 << 20) / bytes, (i64)1) * max(count / max(a.heads_kv, 1), 1));
        }
    }
    MEMBER bool next(int& b, int& h, int& m, int& Sq, int& Sk) {
        if (!first) {
            int drawn = 0;
            if (lane_id() == 0) drawn = atomicAdd(ticket, 1);
            at = gridDim.x + (u32)__shfl_sync(~0u, drawn, 0);
        }
        first = false;
        if (at >= items) {
            if (lane_id() == 0) {
                __threadfence();
                if (atomicAdd(ticket + 1, 1) == (int)gridDim.x - 1) ticket[0] = 0, ticket[1] = 0;
            }
            __syncwarp();
            return false;
        }
        const u32 per = section * rows, first = at / per * section, rest = at - first * rows, wide = min(section, (u32)args.requests * count - first);
        const u32 r = rest / wide, bh = first + rest - r * wide;
        m = rows - 1 - (int)r;
        b = (int)(bh / count);
        h = (int)bh - b * count + args.head_begin * (count / args.heads_q); // count may be T heads for one
        Sq = args.max_q;
        Sk = key_length(args, b);
        return true;
    }
};

// ---- A channel: entries of 512 bytes, published by one warp, taken by all warps of those that wait for them. Key ranges
// stay in the entry, which is given back when the next one is taken: one more than fit is kept.
FN void put(u32& at, int x) { asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(x) : "memory"); at += 4; }
FN int word_at(u32 at) { int x; asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(at) : "memory"); return same(x); }
FN void get(u32& at, int& x) { x = word_at(at); at += 4; }
FN void get(u32& at, bool& x) { x = word_at(at) != 0; at += 4; }
template <class R> struct Taken;
template <int N> FN void put(u32& at, const Ranges<N>& x) {
    put(at, x.length());
    UNROLL for (int k = 0; k < N; ++k) put(at, x.end[k]), put(at, max(x.end[k] - x.begin[k], 0) * 2 + x.masked[k]);
}
template <int N> struct Taken<Ranges<N>> {
    u32 at; int total, next, range, left, tile; bool masked; // `next` tiles were picked, the last one is `tile`
    MEMBER int length() const { return total; }
    MEMBER void rewind() { next = 0, range = 0, left = 0, tile = 0, masked = true; }
    MEMBER void pick(int k, int& n, bool& m) {
        if (k < next - 1) rewind();
        while (next <= k) {
            while (left == 0 && range < N) {
                tile = word_at(at + 8 * range);
                left = word_at(at + 8 * range + 4);
                masked = left & 1, left >>= 1;
                ++range;
            }
            left > 0 ? (--left, --tile) : (masked = true, tile = 0); // no tile at all: one that is masked
            ++next;
        }
        n = tile, m = masked;
    }
};
template <int N> FN void get(u32& at, Taken<Ranges<N>>& x) { get(at, x.total); x.at = at, at += 8 * N; x.rewind(); }
FN void put(u32& at, const Classes& x) { // a word of each kind a lane
    put(at, x.count), put(at, x.step), put(at, x.total);
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + 4 * lane_id()), "r"(x.some) : "memory");
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(at + 128 + 4 * lane_id()), "r"(x.every) : "memory");
    at += 256;
}
template <> struct Taken<Classes> : Picked<Taken<Classes>> {
    u32 at;
    MEMBER void load(int w) { left = word_at(at + 4 * w), whole = word_at(at + 128 + 4 * w); }
};
FN void get(u32& at, Taken<Classes>& x) { get(at, x.count), get(at, x.step), get(at, x.total); x.at = at, at += 256; x.rewind(); }
template <int N> struct Channel {
    static constexpr int kEntry = 512, kEntries = N + 1;
    u32 full, free, entries; int count;
    MEMBER Channel(Smem& smem, int takers) : full(smem.barriers(kEntries, 1)), free(smem.barriers(kEntries, takers)), entries(smem.take(kEntries * kEntry, 16)), count(0) {}
    template <class... X> MEMBER void publish(const X&... x) {
        const int k = count % kEntries;
        wait(Barrier{free + 8 * k}, count / kEntries - 1);
        u32 at = entries + k * kEntry;
        (put(at, x), ...);
        arrive(Barrier{full + 8 * k});
        ++count;
    }
    template <class... X> MEMBER void take(X&... x) {
        if (count > 0) arrive(Barrier{free + 8 * ((count - 1) % kEntries)});
        const int k = count % kEntries;
        wait(Barrier{full + 8 * k}, count / kEntries);
        u32 at = entries + k * kEntry;
        (get(at, x), ...);
        ++count;
    }
};
