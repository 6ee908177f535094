// SPDX-License-Identifier: Apache-2.0
// Declares all schedules. A use without the schedule's header is a compiler error that shows the declaration,
// and its comment names the header.
#pragma once
#include <rankc/base/text.hpp>

namespace rankc::schedules {

template <literal Text>
struct from_csv;                 // not defined: #include <rankc/schedules/from_csv.hpp>
struct best;                     // not defined: #include <rankc/schedules/best.hpp>
struct dual_pipe;                // not defined: #include <rankc/schedules/dual_pipe.hpp>
struct dual_pipe_v;              // not defined: #include <rankc/schedules/dual_pipe_v.hpp>
struct gpipe;                    // not defined: #include <rankc/schedules/gpipe.hpp>
struct group_interleaved;        // not defined: #include <rankc/schedules/group_interleaved.hpp>
struct interleaved_one_f_one_b;  // not defined: #include <rankc/schedules/interleaved_one_f_one_b.hpp>
struct interleaved_zero_bubble;  // not defined: #include <rankc/schedules/interleaved_zero_bubble.hpp>
struct looped_bfs;               // not defined: #include <rankc/schedules/looped_bfs.hpp>
struct one_f_one_b;              // not defined: #include <rankc/schedules/one_f_one_b.hpp>
struct one_f_one_b_v;            // not defined: #include <rankc/schedules/one_f_one_b_v.hpp>
struct v_half;                   // not defined: #include <rankc/schedules/v_half.hpp>
struct v_min;                    // not defined: #include <rankc/schedules/v_min.hpp>
struct zero_bubble_1p;           // not defined: #include <rankc/schedules/zero_bubble_1p.hpp>
struct zero_bubble_2p;           // not defined: #include <rankc/schedules/zero_bubble_2p.hpp>
struct zero_bubble_v;            // not defined: #include <rankc/schedules/zero_bubble_v.hpp>
struct zero_bubble_v_greedy;     // not defined: #include <rankc/schedules/zero_bubble_v_greedy.hpp>

}  // namespace rankc::schedules
