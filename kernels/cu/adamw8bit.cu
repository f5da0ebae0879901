// AdamW whose moments are kept in 8 bits (Dettmers et al. 2022), in blocks of 256 elements with one fp32 scale each.
//
// A state is a code a element, which names one of the 256 values of a dynamic map, and for each block the largest absolute
// value in it: state = map[code] · absmax. The first moment has the signed map, the second the unsigned one.

#include "dynamic_map.cuh"
#include "index.cuh"
#include "reduce.cuh"

#define STATE_BLOCK 256

// The code of the value of an ascending map that is nearest to x; of two that are as near, the smaller.
__device__ inline unsigned char nearest_code(const float *map, float x) {
    u32 code = 0;
    for (u32 step = 128; step > 0; step /= 2) {
        if (map[code + step] <= x) {
            code += step;
        }
    }
    if (code < 255 && map[code + 1] - x < x - map[code]) {
        code += 1;
    }
    return (unsigned char)code;
}

// weight and gradient (elements), codes (elements) of one byte, absmaxes (elements / 256, rounded up); all but the gradient
// are updated in place. The state is dequantised, the update of adamw.cu is done in fp32, and the new state is quantised by
// the new absmax of its block. Where that is 0, the code is that of 0.
//
// One block of 256 threads for each block of the state, or fewer, which loop.
extern "C" __global__ void adamw8bit(float *weight, unsigned char *first_codes, unsigned char *second_codes,
                                     float *first_absmax, float *second_absmax, const float *gradient, u64 elements,
                                     float rate, float beta1, float beta2, float epsilon, float decay, float correction1,
                                     float correction2) {
    __shared__ float of_first[STATE_BLOCK], of_second[STATE_BLOCK];
    of_first[threadIdx.x] = signed_map[threadIdx.x];
    of_second[threadIdx.x] = unsigned_map[threadIdx.x];
    __syncthreads();
    u64 blocks = (elements + STATE_BLOCK - 1) / STATE_BLOCK;
    for (u64 block = blockIdx.x; block < blocks; block += gridDim.x) {
        u64 i = block * STATE_BLOCK + threadIdx.x;
        float m = 0.0f, v = 0.0f;
        if (i < elements) {
            float g = gradient[i];
            m = beta1 * (of_first[first_codes[i]] * first_absmax[block]) + (1.0f - beta1) * g;
            v = beta2 * (of_second[second_codes[i]] * second_absmax[block]) + (1.0f - beta2) * g * g;
            float w = weight[i];
            w -= rate * decay * w;
            w -= rate * (m / correction1) / (sqrtf(v / correction2) + epsilon);
            weight[i] = w;
        }
        // These wait for every thread, so that the old scales have been read when they are replaced.
        float m_largest = block_max(fabsf(m)), v_largest = block_max(v);
        if (i < elements) {
            first_codes[i] = nearest_code(of_first, m_largest > 0.0f ? m / m_largest : 0.0f);
            second_codes[i] = nearest_code(of_second, v_largest > 0.0f ? v / v_largest : 0.0f);
        }
        if (threadIdx.x == 0) {
            first_absmax[block] = m_largest;
            second_absmax[block] = v_largest;
        }
    }
}
