// SPDX-License-Identifier: Apache-2.0
#include "row_logits.hpp"

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/label_weights.hpp>

#include <algorithm>
#include <cstddef>

namespace rankc::runtime {

void refuse_one_rank(const options& o, const char* command) {
  if (!o.where.is_one_rank()) return;
  throw failure(2,
                "RC6069: {} runs all ranks in one process; start it once, without torchrun, mpirun or srun",
                command);
}

const layout& layout_with_logits(const description& about) {
  const layout& where = about.layouts[static_cast<std::size_t>(about.loss_at())];
  if (where.logits.rows > 0) return where;
  throw failure(1,
                "RC6065: plan {} computes no logits in a forward, because its last layer is not a cross "
                "entropy over a vocabulary",
                about.name);
}

void set_sequences(engine& e, std::span<const std::vector<std::int32_t>> sequences) {
  const description& about = e.about();
  const int kept = layout_with_logits(about).logits.microbatch;
  const auto seq = static_cast<std::size_t>(about.seq), rows = static_cast<std::size_t>(about.rows);
  const std::vector<std::int32_t> none(rows * seq);
  const std::vector<double> no_weights(rows * seq);
  std::vector<named_array> weights;
  if (about.token_weights) weights.push_back({name_of_weights, no_weights});
  for (int microbatch = 0; microbatch < about.microbatches; ++microbatch)
    for (int dp = 0; dp < about.dp; ++dp) {
      std::vector<std::int32_t> ids = none;
      const std::size_t first = microbatch == kept ? static_cast<std::size_t>(dp) * rows : sequences.size();
      for (std::size_t row = 0; row < rows && first + row < sequences.size(); ++row)
        std::copy(sequences[first + row].begin(), sequences[first + row].end(),
                  ids.begin() + static_cast<std::ptrdiff_t>(row * seq));
      e.set_batch(dp, microbatch, ids.data(), none.data());
      if (!weights.empty()) e.set_inputs(dp, microbatch, weights);
    }
}

std::vector<double> logits_at(engine& e, int dp, int row, int position) {
  const description& about = e.about();
  const int columns = layout_with_logits(about).logits.columns;
  std::vector<double> logits(static_cast<std::size_t>(about.tp) * static_cast<std::size_t>(columns));
  for (int rank = 0; rank < about.world(); ++rank) {
    const rank_row& at = about.ranks[static_cast<std::size_t>(rank)];
    const chunks has = about.chunks_of(at);
    const int place = has.place(position);
    if (at.pp == about.loss_at() && at.dp == dp && place >= 0)
      e.logits(rank, static_cast<std::size_t>(row * has.count() + place), logits.data() + at.tp * columns);
  }
  logits.resize(static_cast<std::size_t>(about.vocab_used));  // drops the padding
  return logits;
}

}  // namespace rankc::runtime
