// SPDX-License-Identifier: Apache-2.0
// The one include that a plan needs.
#pragma once
// Included first, because a compiler error prints the chain of includes to `valid`, and a short chain is
// easier to read.
#include <rankc/base/diagnostic.hpp>

#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/mixtral.hpp>
#include <rankc/models/qwen2.hpp>
#include <rankc/models/qwen3.hpp>
#include <rankc/models/qwen3_moe.hpp>
#include <rankc/plan/plan_value.hpp>
#include <rankc/schedules/declared.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/version.hpp>
