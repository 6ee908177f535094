// SPDX-License-Identifier: Apache-2.0
// Checkpoints: DIR/step_000100/{rank_00000.safetensors, ..., index.json, run.json, COMMIT}, and DIR/latest,
// which names the newest. Each rank writes what it alone holds; the index says where every part of a tensor
// lies, so that a checkpoint loads into any parallel layout of the same model. A folder without COMMIT is
// none.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>
#include <rankc/trainer/piece_source.hpp>
#include <rankc/trainer/run_state.hpp>
#include <rankc/trainer/snapshot.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Make sure that checkpoints can be written below `directory`, before hours of training depend on it.
/// Errors: failure (65) when they cannot.
void prepare_save(const std::filesystem::path& directory);

/// Write a checkpoint and return its folder; where ranks are processes, each calls it. It is written under a
/// name that no loader reads, and renamed when whole and on disk; `latest` follows after that. One of the
/// same step stays until then: the two change names at one moment, or, where the file system cannot, the old
/// one is set aside first, where
/// `find_checkpoint` knows it. Of older ones the newest `keep` - 1 stay (0: all).
/// Errors: failure (65) in every process when any cannot write; earlier checkpoints stay as they are.
std::filesystem::path write_checkpoint(const description&, const snapshot&,
                                       const std::filesystem::path& directory, const placement& = {},
                                       int keep = 0);
std::filesystem::path save_checkpoint(engine&, const run_state&, const std::filesystem::path& directory);

/// The checkpoints that a path means, the first choice first: itself where it holds COMMIT, else the one that
/// its `latest` names, those of earlier steps, and those of later ones.
std::vector<std::filesystem::path> find_checkpoints(const std::filesystem::path& path);

/// The first of these. Errors: failure (65) where there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// A checkpoint that is open: all that this process's ranks need of it is there, is this model's, and has
/// been checked.
struct open_checkpoint {
  std::filesystem::path folder;
  run_state state;
  std::unique_ptr<piece_source> tensors;
  std::vector<std::string> notes;  // why it is not the first choice
};

/// Open the first of the checkpoints that a path means that is whole for every process; weights alone where
/// the program does not train.
/// Errors: failure (65) for damaged files, where the path is a checkpoint itself or no other is whole, and
/// for tensors that this model does not have or lacks.
open_checkpoint open_newest(const description&, const std::filesystem::path& path, const placement& = {});

/// Read what an engine's ranks hold; of a path, as `open_newest` does.
void load_checkpoint(engine&, const open_checkpoint&);
void load_checkpoint(engine&, const std::filesystem::path& path);

/// A checkpoint's weights, checked.
/// Errors: failure (65) for damaged files and for tensors that this model does not have or lacks.
std::unique_ptr<tensor_source> open_weights(const description&, const std::filesystem::path& folder);

/// Read weights alone, from a .safetensors file, a folder with model.safetensors, a Hugging Face folder, or a
/// checkpoint. What lora has beside weights may be missing, all of it: it then starts as by hash:1. Returns
/// the names of what did.
/// Errors: failure (1) for damaged files and for tensors that this model does not have or lacks.
std::vector<std::string> load_weights(engine&, const std::filesystem::path& path, const placement& = {});

}  // namespace rankc::runtime
