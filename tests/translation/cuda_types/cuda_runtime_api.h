// SPDX-License-Identifier: Apache-2.0
// The names of the CUDA runtime that rankc's headers mention: the recorder needs no toolkit.
#pragma once
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
typedef struct CUgraphExec_st* cudaGraphExec_t;
