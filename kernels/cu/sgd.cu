// Stochastic gradient descent. Launched elementwise: any one-dimensional grid.

#include "index.cuh"

// w ← w - rate · g; weight (updated in place) and gradient (elements)
extern "C" __global__ void sgd(float *weight, const float *gradient, u64 elements, float rate) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        weight[i] -= rate * gradient[i];
    }
}
