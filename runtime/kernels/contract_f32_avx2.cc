// ContractF32's hot loops for AVX2.
#define DLA_ISA avx2
#define DLA_BLOCK 4
#include "runtime/kernels/contract_f32_body.h"
