// SPDX-License-Identifier: Apache-2.0
// Training frameworks with published step times.
#pragma once
#include <rankc/cost_model/framework.hpp>

namespace rankc::cost_model {

/// Megatron-LM as it was for Narayanan et al. 2021, and Megatron-DeepSpeed of these years. Its loss is
/// computed in f32; per logit it has a cast, a maximum, a difference, an exponential, two sums, a quotient
/// and the gradient. Its optimizer unscales gradients, looks for infinities and clips, each in a separate
/// pass.
/// Source: github.com/NVIDIA/Megatron-LM; for its messages, Narayanan et al. 2021, section 4.1.
inline constexpr framework megatron_2021{.name = "Megatron-LM 2021",
                                         .keeps_scores = true,
                                         .dropouts = true,
                                         .separate_passes = true,
                                         .adds_apart = true,
                                         .repeats_whole_layers = true,
                                         .loss_bytes = 52,
                                         .sweep_bytes = 26,
                                         .copies_to_send = true,
                                         .sums_beside = false,
                                         .sends_beside = false,
                                         .scatters_messages = true};

/// Megatron-LM as it was for Korthikanti et al. 2022: GEMMs accumulate weight gradients, and tp's reductions
/// overlap with GEMMs.
/// Source: github.com/NVIDIA/Megatron-LM, LinearWithGradAccumulationAndAsyncCommunication.
inline constexpr framework megatron_2022 = [] {
  framework f = megatron_2021;
  f.name = "Megatron-LM 2022";
  f.adds_apart = false;
  f.tensor_sums_beside = true;
  return f;
}();

/// With fused attention, a sharded optimizer state, and gradient reductions that overlap with backward.
inline constexpr framework megatron_2025{
    .name = "Megatron-LM 2025", .copies_to_send = true, .tensor_sums_beside = true};

/// NeMo, which sends the inputs and outputs of tp's GEMMs in parts. `joules` and `waits_for_tensor` are
/// fitted to every fourth of its bf16 steps in NVIDIA's dgxc-benchmarking and in MLPerf Training 5.0
/// (tests/cost_model/published.jsonl).
inline constexpr framework nemo_2025{.name = "NeMo 2025",
                                     .joules = 1.049,
                                     .waits_for_tensor = 0.2956,
                                     .copies_to_send = true,
                                     .tensor_sums_beside = true};

/// The same with fp8 GEMMs, at twice the bf16 peak. Activations are read in 16 bits and written in fp8, in
/// two layouts, and tp all-gathers them in fp8. The joules of an operation are fitted to the same steps.
inline constexpr framework nemo_2025_fp8 = [] {
  framework f = nemo_2025;
  f.name = "NeMo 2025, fp8";
  f.products = {.speed = 2, .joules = 0.5244, .gathered = 0.5, .cast_bytes = 4};
  return f;
}();

}  // namespace rankc::cost_model
