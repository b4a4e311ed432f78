// ContractF32's hot loops for AVX-512F.
#define DLA_ISA avx512
#define DLA_BLOCK 16
#include "runtime/kernels/contract_f32_body.h"
