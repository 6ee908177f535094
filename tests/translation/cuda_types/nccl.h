// SPDX-License-Identifier: Apache-2.0
// The names of NCCL that rankc's headers mention: the recorder needs no toolkit.
#pragma once
typedef struct ncclComm* ncclComm_t;
typedef enum { ncclSum } ncclRedOp_t;
