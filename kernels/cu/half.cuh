// Elements of 16 bits, fp16 or bf16, beside those of fp32. Kernels compute in fp32: an element is widened when it is read,
// exactly, and rounded when it is written, to the nearest and of two that are as near to the even one.
//
// Conversions are written in integers, so that every device and the emulator of the tests give the same bits.

#pragma once

#include "index.cuh"

typedef unsigned short u16;

// What an element is; a kernel's parameter.
#define ELEMENT_FP32 0u
#define ELEMENT_FP16 1u
#define ELEMENT_BF16 2u

// fp16: a sign, 5 bits of exponent, 10 of fraction. Multiples of 2⁻²⁴ below 2⁻¹⁴; the largest is 65504.
__device__ inline float widened_fp16(u16 half) {
    u32 sign = (u32)(half & 0x8000u) << 16, exponent = half >> 10 & 31u, fraction = half & 0x3ffu;
    if (exponent == 31u) {
        return __uint_as_float(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent == 0u) {
        float magnitude = (float)fraction * (1.0f / 16777216.0f);
        return __uint_as_float(sign | __float_as_uint(magnitude));
    }
    return __uint_as_float(sign | (exponent + 112u) << 23 | fraction << 13);
}

__device__ inline u16 rounded_fp16(float value) {
    u32 bits = __float_as_uint(value);
    u32 sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        return (u16)(sign | 0x7e00u);  // NaN
    }
    if (magnitude >= 0x477ff000u) {
        return (u16)(sign | 0x7c00u);  // from 65520 on: infinity
    }
    if (magnitude < 0x38800000u) {
        // Below 2⁻¹⁴. Numbers from 0.5 to 1 are multiples of 2⁻²⁴: the addition rounds as is wanted.
        u32 fraction = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
        return (u16)(sign | fraction);
    }
    u32 rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (u16)(sign | ((rounded >> 13) - (112u << 10)));
}

// bf16: the upper half of fp32.
__device__ inline float widened_bf16(u16 half) { return __uint_as_float((u32)half << 16); }

__device__ inline u16 rounded_bf16(float value) {
    u32 bits = __float_as_uint(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (u16)(bits >> 16 | 0x40u);  // NaN
    }
    return (u16)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Element i of an array of `element`s.
__device__ inline float read(const void *array, u32 element, u64 i) {
    if (element == ELEMENT_FP32) {
        return ((const float *)array)[i];
    }
    u16 half = ((const u16 *)array)[i];
    return element == ELEMENT_FP16 ? widened_fp16(half) : widened_bf16(half);
}

__device__ inline void write(void *array, u32 element, u64 i, float value) {
    if (element == ELEMENT_FP32) {
        ((float *)array)[i] = value;
    } else {
        ((u16 *)array)[i] = element == ELEMENT_FP16 ? rounded_fp16(value) : rounded_bf16(value);
    }
}
