// SPDX-License-Identifier: Apache-2.0
// The include for the header of a user's op: all ops, and the parts of an op's row.
#pragma once
#include <rankc/ops/table.hpp>
