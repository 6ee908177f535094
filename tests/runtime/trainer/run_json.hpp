// SPDX-License-Identifier: Apache-2.0
// Changes the run.json of checkpoints: to that of older versions, or to illegal values.
#pragma once
#include "json/json_checksum.hpp"
#include "scratch.hpp"

#include <string>

namespace rankc::runtime {

/// Changes a checkpoint's run.json, and updates the checksums.
template <class Edit>
void edit_run_json(const std::string& folder, const Edit& edit) {
  const std::string before = contents(folder + "/run.json");
  auto root = nlohmann::ordered_json::parse(before);
  edit(root);
  root["checksum"] = checksum_of(root);
  const std::string after = root.dump(2) + "\n", sum = checksum::of(before);
  std::string commit = contents(folder + "/COMMIT");
  if (const std::size_t at = commit.find(sum); at != commit.npos)
    commit.replace(at, sum.size(), checksum::of(after));
  std::ofstream(folder + "/run.json", std::ios::binary) << after;
  std::ofstream(folder + "/COMMIT", std::ios::binary) << commit;
}

/// Removes the fields that older versions did not write.
inline void make_run_json_old(const std::string& folder) {
  edit_run_json(folder, [](nlohmann::ordered_json& root) {
    for (const char* added : {"tokens", "read", "plan_recipe", "eval_every", "eval_batches"})
      root.erase(added);
  });
}

}  // namespace rankc::runtime
