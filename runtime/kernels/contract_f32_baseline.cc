// ContractF32's hot loops for any 64-bit machine.
#define DLA_ISA baseline
#define DLA_BLOCK 2
#include "runtime/kernels/contract_f32_body.h"
