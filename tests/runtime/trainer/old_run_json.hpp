// SPDX-License-Identifier: Apache-2.0
// Checkpoints as versions wrote them whose run.json did not say what a run had read.
#pragma once
#include "json_checksum.hpp"
#include "scratch.hpp"

#include <string>

namespace rankc::runtime {

/// Take the newer fields out of a checkpoint's run.json, and mend its checksums.
inline void make_run_json_old(const std::string& folder) {
  const std::string before = contents(folder + "/run.json");
  auto root = nlohmann::ordered_json::parse(before);
  for (const char* added : {"tokens", "read", "plan_recipe", "eval_every", "eval_batches"}) root.erase(added);
  root["checksum"] = checksum_of(root);
  const std::string after = root.dump(2) + "\n";
  std::string commit = contents(folder + "/COMMIT");
  const std::string sum = checksum::of(before);
  if (const std::size_t at = commit.find(sum); at != commit.npos)
    commit.replace(at, sum.size(), checksum::of(after));
  std::ofstream(folder + "/run.json", std::ios::binary) << after;
  std::ofstream(folder + "/COMMIT", std::ios::binary) << commit;
}

}  // namespace rankc::runtime
