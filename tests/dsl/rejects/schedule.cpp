// SPDX-License-Identifier: Apache-2.0
// RC3xx: schedules. The library's schedules are correct, so most of these are written by hand.
#include "reject.hpp"

#include <rankc/schedules/best.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/from_csv.hpp>

inline constexpr models::gpt2 gpt{.layers = 2, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 8};

namespace refused {

using enum action_kind;  // not at file scope: rankc::I is a placement

/// Two ranks with one stage each, and each rank's actions.
struct by_hand {
  action of_rank[2][4];
  int microbatches = 1, stages_per_rank = 1;
  static constexpr std::string_view name = "by_hand";
  constexpr int rank_of_stage(int stage, int) const { return stage % 2; }
  constexpr void actions(int, int rank, auto emit) const {
    for (const action& a : of_rank[rank])
      if (a.microbatch >= 0) emit(a);
  }
};
inline constexpr action none{F, 0, -1};

constexpr auto scheduled(auto schedule, int pp = 2) {
  return plan{.model = gpt,
              .dims = parallel_dims{.world = pp, .pp = pp},
              .schedule = schedule,
              .recipe = recipe,
              .cluster = clusters::cpu};
}

inline constexpr auto rc301_no_microbatches = scheduled(schedules::one_f_one_b{.microbatches = fault(0, 1)});
// error: RC301: microbatches=0; a step has at least 1
static_assert(valid<rc301_no_microbatches>);

inline constexpr auto rc301_no_stage_on_a_rank = scheduled(
    by_hand{{{{F, 0, 0}, {B, 0, 0}, none, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}, 1, fault(0, 1)});
// error: RC301: the schedule has 0 stages (stages_per_rank=0) for pp=2 ranks; each rank has at least 1 stage
static_assert(valid<rc301_no_stage_on_a_rank>);

inline constexpr auto rc302_forward_twice = scheduled(by_hand{
    {{{F, 0, 0}, fault(action{F, 0, 0}, none), {B, 0, 0}, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC302: rank 0 runs 0F0, but stage 0 has run its forward of microbatch 0 before
static_assert(valid<rc302_forward_twice>);

inline constexpr auto rc302_whole_backward_after_its_half = scheduled(
    by_hand{{{{F, 0, 0}, {B, 0, 0}, none, none}, {{F, 1, 0}, {I, 1, 0}, {fault(B, W), 1, 0}, none}}});
// error: RC302: rank 1 runs 1B0, but stage 1 has run its backward of microbatch 0 before
static_assert(valid<rc302_whole_backward_after_its_half>);

inline constexpr auto rc302_weights_twice = scheduled(by_hand{
    {{{F, 0, 0}, {B, 0, 0}, fault(action{W, 0, 0}, none), none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC302: rank 0 runs 0W0, but stage 0 has run its backward of microbatch 0 before
static_assert(valid<rc302_weights_twice>);

inline constexpr auto rc302_overlap_with_nothing = scheduled(
    by_hand{{{{F, 0, 0}, {B, 0, 0, fault(true, false)}, none, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC302: rank 0 overlaps 0B0 with nothing; an OVERLAP joins two consecutive actions
static_assert(valid<rc302_overlap_with_nothing>);

inline constexpr auto rc302_stage_of_another_rank = scheduled(by_hand{
    {{{F, 0, 0}, fault(action{F, 1, 0}, none), {B, 0, 0}, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC302: rank 0 has 1F0, but stage 1 is on rank 1
static_assert(valid<rc302_stage_of_another_rank>);

inline constexpr auto rc302_no_such_microbatch = scheduled(by_hand{
    {{{F, 0, 0}, fault(action{F, 0, 1}, none), {B, 0, 0}, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC302: rank 0 has 0F1, but stages end at 1 and microbatches at 0
static_assert(valid<rc302_no_such_microbatch>);

inline constexpr auto rc302_rather_than_the_wait_behind_it =
    scheduled(by_hand{{{{fault(B, F), 0, 0}, fault(action{F, 2, 0}, action{B, 0, 0}), none, none},
                       {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC302: rank 0 has 2F0, but stages end at 1 and microbatches at 0
static_assert(valid<rc302_rather_than_the_wait_behind_it>);

inline constexpr auto rc303_no_backward = scheduled(
    by_hand{{{{F, 0, 0}, fault(none, action{B, 0, 0}), none, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC303: stage 0 never runs its backward of microbatch 0; each stage runs F and B, or F, I and W, of
//        each of the 1 microbatches
static_assert(valid<rc303_no_backward>);

inline constexpr auto rc303_no_weight_gradients = scheduled(by_hand{
    {{{F, 0, 0}, {I, 0, 0}, fault(none, action{W, 0, 0}), none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC303: stage 0 never runs its backward of microbatch 0; each stage runs F and B, or F, I and W, of
//        each of the 1 microbatches
static_assert(valid<rc303_no_weight_gradients>);

inline constexpr auto rc303_no_forward =
    scheduled(by_hand{{{{F, 0, 0}, {B, 0, 0}, fault(none, action{F, 0, 1}), fault(none, action{B, 0, 1})},
                       {{F, 1, 0}, {B, 1, 0}, fault(none, action{F, 1, 1}), fault(none, action{B, 1, 1})}},
                      2});
// error: RC303: stage 0 never runs its forward of microbatch 1; each stage runs F and B, or F, I and W, of
//        each of the 2 microbatches
static_assert(valid<rc303_no_forward>);

inline constexpr auto rc304_overlap_of_halves_that_need_each_other = scheduled(
    by_hand{{{{F, 0, 0}, {B, 0, 0}, none, none}, {{F, 1, 0, fault(true, false)}, {B, 1, 0}, none, none}}});
// error: RC304: rank 1 waits for 1F0 before OVERLAP(1F0,1B0), for ever; order each rank's actions by their
//        data: F after F of the stage before, B after B of the stage after
static_assert(valid<rc304_overlap_of_halves_that_need_each_other>);

inline constexpr auto rc304_backward_before_forward = scheduled(
    by_hand{{{{fault(B, F), 0, 0}, {fault(F, B), 0, 0}, none, none}, {{F, 1, 0}, {B, 1, 0}, none, none}}});
// error: RC304: rank 0 waits for 0F0 before 0B0, for ever; order each rank's actions by their data: F after F
//        of the stage before, B after B of the stage after
static_assert(valid<rc304_backward_before_forward>);

inline constexpr auto rc304_ranks_wait_for_each_other =
    scheduled(by_hand{{{{F, 0, 0}, {fault(B, F), 0, fault(0, 1)}, {fault(F, B), 0, fault(1, 0)}, {B, 0, 1}},
                       {{F, 1, 0}, {F, 1, 1}, {B, 1, 0}, {B, 1, 1}}},
                      2});
// error: RC304: rank 0 waits for 1B0 before 0B0, rank 1 waits for 0F1 before 1F1, for ever; order each rank's
//        actions by their data: F after F of the stage before, B after B of the stage after
static_assert(valid<rc304_ranks_wait_for_each_other>);

inline constexpr auto rc304_weights_before_inputs = scheduled(by_hand{
    {{{F, 0, 0}, {B, 0, 0}, none, none}, {{F, 1, 0}, {fault(W, I), 1, 0}, {fault(I, W), 1, 0}, none}}});
// error: RC304: rank 1 waits for 1I0 before 1W0, for ever; order each rank's actions by their data: F after F
//        of the stage before, B after B of the stage after
static_assert(valid<rc304_weights_before_inputs>);

inline constexpr auto rc312_half_a_microbatch = scheduled(schedules::dual_pipe{.microbatches = fault(1, 2)});
// error: RC312: microbatches=1 is odd; dual_pipe sends half of them each way, so take 2, or dual_pipe_v,
//        which runs any number
static_assert(valid<rc312_half_a_microbatch>);

inline constexpr auto rc312_rank_without_mirror =
    scheduled(schedules::dual_pipe{.microbatches = 2}, fault(1, 2));
// error: RC312: pp=1 is odd; dual_pipe pairs each rank with its mirror, so take pp=2, or dual_pipe_v, which
//        runs on any number of ranks
static_assert(valid<rc312_rank_without_mirror>);

using schedules::from_csv;

inline constexpr auto rc313_no_such_action =
    scheduled(from_csv<fault(literal("0F0, 0X0\n1F0, 1B0"), literal("0F0, 0B0\n1F0, 1B0"))>{});
// error: RC313: line 1, token 2: '0X0' is not an action; write the stage, one of FBIW, and the microbatch, as
//        0F0, or two of them as OVERLAP(0F1,2B0), or 0UNSHARD, 0RESHARD, 0REDUCE_GRAD, 0STEP
static_assert(valid<rc313_no_such_action>);

inline constexpr auto rc307_no_room_for_one =
    scheduled(schedules::best{.microbatches = 2, .memory_limit = fault(0, 2), .runs = 0});
// error: RC307: memory_limit=0, but one microbatch alone holds its activations of the 1 stages of a rank;
//        take at least 1
static_assert(valid<rc307_no_room_for_one>);

inline constexpr auto rc313_line_missing =
    scheduled(from_csv<fault(literal("0F0, 0B0, 0F1, 0B1"), literal("0F0, 0B0\n 1F0, 1B0"))>{});
// error: RC313: pp=2, but the text has 1 line; there is a line for each rank: take pp=1
static_assert(valid<rc313_line_missing>);

inline constexpr auto rc313_no_actions =
    scheduled(from_csv<fault(literal("                 "), literal("0F0, 0B0\n1F0, 1B0"))>{});
// error: RC313: the text has no actions; write a line for each rank, as 0F0, 0B0
static_assert(valid<rc313_no_actions>);

inline constexpr auto rc313_stage_left_out =
    scheduled(from_csv<fault(literal("0F0, 0B0\n2F0, 2B0"), literal("0F0, 0B0\n1F0, 1B0"))>{});
// error: RC313: no line has a forward of stage 1, but they go up to 2
static_assert(valid<rc313_stage_left_out>);

inline constexpr auto rc302_step_of_another_rank =
    scheduled(from_csv<fault(literal("0F0, 0B0, 1STEP\n1F0, 1B0"), literal("0F0, 0B0, 0STEP\n1F0, 1B0"))>{});
// error: RC302: rank 0 has 1STEP, but stage 1 is on rank 1
static_assert(valid<rc302_step_of_another_rank>);

inline constexpr auto rc310_gradients_behind_their_reduction =
    scheduled(from_csv<fault(literal("0F0, 0I0, 0REDUCE_GRAD, 0W0\n1F0, 1B0"),
                             literal("0F0, 0I0, 0W0, 0REDUCE_GRAD\n1F0, 1B0"))>{});
// error: RC310: rank 0 has 0W0 behind 0REDUCE_GRAD, which comes once, after the last gradient of the stage:
//        put it behind 0W0
static_assert(valid<rc310_gradients_behind_their_reduction>);

inline constexpr auto rc310_computes_while_sharded =
    scheduled(from_csv<fault(literal("0UNSHARD, 0F0, 0RESHARD, 0B0\n1F0, 1B0"),
                             literal("0UNSHARD, 0F0, 0B0, 0RESHARD\n1F0, 1B0"))>{});
// error: RC310: rank 0 has 0B0, but stage 0 is sharded there; put 0UNSHARD before it
static_assert(valid<rc310_computes_while_sharded>);

inline constexpr auto rc304_in_a_text =
    scheduled(from_csv<fault(literal("0F0, 0B0\n1B0, 1F0"), literal("0F0, 0B0\n1F0, 1B0"))>{});
// error: RC304: rank 1 waits for 1F0 before 1B0, for ever; order each rank's actions by their data: F after F
//        of the stage before, B after B of the stage after
static_assert(valid<rc304_in_a_text>);

}  // namespace refused
