// SPDX-License-Identifier: Apache-2.0
// A command line of a generated program, called as a function.
#pragma once
#include "registry.hpp"

#include <rankc/trainer/main.hpp>

#include "../capture.hpp"

/// The exit code and the printed text: "0 eval: loss 4.1".
inline std::string command(const registered& p, std::vector<std::string> words) {
  words.insert(words.begin(), "program");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  testing::capture out(stdout);
  const int code = rankc::runtime::program_main(
      *p.about, [&] { return p.install(); }, static_cast<int>(argv.size()), argv.data());
  return std::to_string(code) + " " + out.end();
}
