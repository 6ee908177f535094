// SPDX-License-Identifier: Apache-2.0
#include "packed_examples.hpp"

#include <rankc/runtime/failure.hpp>

namespace rankc::runtime {

std::vector<std::string> notes_on_packing(const description& about,
                                          const std::vector<opened_source>& sources) {
  std::vector<std::string> notes;
  for (const opened_source& source : sources) {
    const std::uint32_t packed = source.tokens ? source.tokens->packed() : 0;
    if (packed == 0) continue;
    if (packed != static_cast<std::uint32_t>(about.seq))
      notes.push_back(
          say("RC6222: {} is packed into sequences of {} tokens, but a sequence of this plan has {}, so "
              "sequences begin inside examples; pack it again by `rankc tokens --pack {}`",
              source.from.path, packed, about.seq, about.seq));
    if (about.end_of_document < 0)
      notes.push_back(
          say("RC6223: the packed examples of {} attend to each other, because this plan has no "
              ".end_of_document; give it the token with which they were packed",
              source.from.path));
  }
  return notes;
}

}  // namespace rankc::runtime
