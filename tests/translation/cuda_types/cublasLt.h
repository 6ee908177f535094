// SPDX-License-Identifier: Apache-2.0
// The names of cuBLASLt that the CUDA runtime's headers mention: the recorder needs no toolkit.
#pragma once
typedef struct cublasLtContext* cublasLtHandle_t;
