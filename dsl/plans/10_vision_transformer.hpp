// SPDX-License-Identifier: Apache-2.0
// A small vision transformer on two ranks. A sequence is an image of 16 x 16 numbers in 16 patches, and a
// step's inputs are the patches and a label for each image. `encoder_data.py` makes such images.
#pragma once
#include <rankc/models/encoder.hpp>
#include <rankc/rankc.hpp>

namespace plans {

using namespace rankc;

inline constexpr models::vision_transformer stripes{
    .layers = 4, .hidden = 64, .heads = 4, .ffn = 128, .patch = 16, .classes = 4};

inline constexpr training recipe_of_images{.seq = 16,
                                           .global_batch = 32,
                                           .precision = f32,
                                           .lr = 1e-3,
                                           .warmup_steps = 20,
                                           .decay_steps = 200,
                                           .min_lr = 1e-4};

inline constexpr plan vit{.model = stripes,
                          .dims = parallel_dims{.world = 2, .dp_replicate = infer},
                          .schedule = schedules::gpipe{.microbatches = 1},
                          .recipe = recipe_of_images,
                          .cluster = clusters::cpu};
static_assert(valid<vit>);

}  // namespace plans
