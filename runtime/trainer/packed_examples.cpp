// SPDX-License-Identifier: Apache-2.0
#include "packed_examples.hpp"

#include <rankc/runtime/failure.hpp>

#include <algorithm>

namespace rankc::runtime {

namespace {

/// Adds a note on the first file whose sequences differ in length from the plan's, and on the first whose
/// sequences do not start where a sequence of the plan starts.
void note_borders(const std::vector<packed_file>& files, std::uint64_t seq, std::vector<std::string>& notes) {
  const auto other =
      std::find_if(files.begin(), files.end(), [&](const packed_file& f) { return f.length != seq; });
  if (other != files.end())
    notes.push_back(
        say("RC6222: {} is packed into sequences of {} tokens, but a sequence of this plan has {}, so "
            "sequences begin inside examples; pack it again with `rankc tokens --pack {}`",
            other->name, other->length, seq, seq));
  const auto shifted = std::find_if(files.begin(), files.end(), [&](const packed_file& f) {
    return f.length == seq && f.first % seq != 0;
  });
  if (shifted != files.end())
    notes.push_back(
        say("RC6290: {} is packed into sequences of {} tokens, but begins at token {} of its source, so "
            "sequences begin inside examples; pack the files before it with `rankc tokens --pack {}` too, or "
            "give it as a separate source, as in A:0.5,B:0.5",
            shifted->name, shifted->length, shifted->first, seq));
}

}  // namespace

std::vector<std::string> notes_on_packing(const description& about,
                                          const std::vector<opened_source>& sources) {
  std::vector<std::string> notes;
  for (const opened_source& source : sources) {
    const std::vector<packed_file> files =
        source.tokens ? source.tokens->packed() : std::vector<packed_file>{};
    if (files.empty()) continue;
    note_borders(files, static_cast<std::uint64_t>(about.seq), notes);
    if (about.end_of_document < 0)
      notes.push_back(
          say("RC6223: the packed examples of {} attend to each other, because this plan has no "
              ".end_of_document; set it to the token that --end-of-document had",
              source.from.path));
  }
  return notes;
}

}  // namespace rankc::runtime
