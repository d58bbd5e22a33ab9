# expect: kind=syntax line=2
__global__ void attention(const float* q, const float* k, const float* v) {
    int i = threadIdx.x;
}
