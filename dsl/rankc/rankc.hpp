// SPDX-License-Identifier: Apache-2.0
// The one include that a plan needs.
#pragma once
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/plan.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/interleaved_zero_bubble.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>
#include <rankc/version.hpp>
