/* stands for CUDA's: the C interface of the runtime, and C++ of kernels by emulate.h */
#pragma once
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <vector_functions.h>
#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#undef __noinline__
#undef __cluster_dims__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#ifndef __align__
#define __align__(n) __attribute__((aligned(n)))
#endif
#define __CUDA_ARCH_FEAT_SM90_ALL 1
#include "emulate.h"
