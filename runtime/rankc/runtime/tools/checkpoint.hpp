// SPDX-License-Identifier: Apache-2.0
// Checkpoints: DIR/step_000100/{model.safetensors, optimizer.safetensors, run.json}, and DIR/latest, which
// names the newest. Tensors are whole, so a checkpoint loads into any parallel layout of the same model.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/tools/run_state.hpp>
#include <rankc/runtime/tools/safetensors.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Make sure that checkpoints can be written below `directory`, before hours of training depend on it.
/// Errors: failure (65) when they cannot.
void prepare_save(const std::filesystem::path& directory);

/// Write a checkpoint and return its folder. It is written under a name that no loader reads and renamed when
/// whole and on disk; `latest` follows after that. One of the same step stays until then: the two change names at one
/// moment, or, where the file system cannot, the old one is set aside first, where `find_checkpoint` knows it.
/// Errors: failure (65) when it cannot be written; earlier checkpoints stay as they are.
std::filesystem::path save_checkpoint(engine&, const run_state&, const std::filesystem::path& directory);

/// The part of a process that does not write in another's `save_checkpoint`: the same reads, in the same
/// order.
void help_save(engine&);

/// The checkpoint that a path means: itself where it holds run.json, else the one that its `latest` names.
/// Errors: failure (65) where there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// Read weights and moments of a checkpoint folder, weights alone where the program does not train. All files that are
/// read are checked before anything is written to a rank.
/// Errors: failure (65) for damaged files and for tensors that this model does not have or lacks.
void load_checkpoint(engine&, const run_state&, const std::filesystem::path& folder);

/// A checkpoint's weights, checked.
/// Errors: failure (65) for damaged files and for tensors that this model does not have or lacks.
safetensors_reader open_weights(const description&, const std::filesystem::path& folder);

/// Read weights alone, from a .safetensors file, a folder with model.safetensors, or a checkpoint. What lora has beside
/// weights may be missing, all of it: it then starts as by hash:1. Returns the names of what did.
/// Errors: failure (1) as for load_checkpoint.
std::vector<std::string> load_weights(engine&, const std::filesystem::path& path);

}  // namespace rankc::runtime
