// Stochastic gradient descent with momentum, in PyTorch's form. Launched elementwise: any one-dimensional grid.

#include "index.cuh"

// weight, velocity (updated in place) and gradient (elements)
//
//   v ← momentum·v + g + decay·w          w ← w - rate·v
extern "C" __global__ void sgd_momentum(float *weight, float *velocity, const float *gradient, u64 elements, float rate,
                                        float momentum, float decay) {
    for (u64 i = first_element(); i < elements; i += element_step()) {
        float v = momentum * velocity[i] + (gradient[i] + decay * weight[i]);
        velocity[i] = v;
        weight[i] -= rate * v;
    }
}
