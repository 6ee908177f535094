// SPDX-License-Identifier: Apache-2.0
// Checkpoints: DIR/step_000100/{rank_00000.safetensors, ..., index.json, run.json, COMMIT}, and DIR/latest,
// which names the newest. Each rank writes its shards; the first of several replicas writes a replicated
// shard. The index locates every part of a tensor, so a checkpoint loads into any parallel layout of the same
// model. A folder without COMMIT is not a checkpoint.
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

/// Creates a folder, and checks before training that checkpoints can be written there.
/// Returns: notes on the guarantees that its file system does not give.
/// Errors: failure (65) if the folder cannot be written.
std::vector<std::string> prepare_save(const std::filesystem::path& directory);

/// Writes a checkpoint. If ranks are processes, each of them calls it. The checkpoint is written under a name
/// that no loader reads, and renamed when it is on disk; `latest` is written after that. A checkpoint of the
/// same step exchanges names with the new one. If the file system cannot exchange names, the old one is
/// renamed first, to a name that `find_checkpoints` reads. Checkpoints older than the newest `keep` are
/// removed; with `keep` = 0, all stay.
/// Returns: its folder.
/// Errors: failure (65) in every process if one cannot write; earlier checkpoints stay unchanged.
std::filesystem::path write_checkpoint(const description&, const snapshot&,
                                       const std::filesystem::path& directory, const placement& = {},
                                       int keep = 0);
std::filesystem::path save_checkpoint(engine&, const run_state&, const std::filesystem::path& directory);

/// The checkpoints of a path, best first: the path itself if it holds COMMIT, else the one that its `latest`
/// names, then those of earlier steps, then those of later steps.
/// Errors: failure (65) if the folder cannot be read.
std::vector<std::filesystem::path> find_checkpoints(const std::filesystem::path& path);

/// The first of find_checkpoints.
/// Errors: failure (65) if there is none.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// An open checkpoint. It holds the tensors that the ranks of this process need, and they match their
/// checksums.
struct open_checkpoint {
  std::filesystem::path folder;
  run_state state;
  std::unique_ptr<tensor_source> tensors;
  std::vector<std::string> notes;  // reasons why it is not the first choice
};

/// Opens the first checkpoint of a path that every process finds undamaged. A program that does not train
/// opens the weights alone.
/// Errors: failure (65) if all are damaged, and for tensors that are missing, unexpected or of another shape.
open_checkpoint open_newest(const description&, const std::filesystem::path& path, const placement& = {});

/// Reads the tensors that an engine's ranks hold. The overload with a path finds the checkpoint by
/// `open_newest`.
void load_checkpoint(engine&, const open_checkpoint&);
void load_checkpoint(engine&, const std::filesystem::path& path);

/// A checkpoint's weights, checked.
/// Errors: failure (65) for damaged files, and for tensors that are missing or that this model does not have.
std::unique_ptr<tensor_source> open_weights(const description&, const std::filesystem::path& folder);

/// Reads weights from a .safetensors file, a folder with model.safetensors, a Hugging Face folder, or a
/// checkpoint. LoRA adapters that the source lacks are initialised as by hash:1. `notes` gets the notes of
/// the source.
/// Returns: the names of the parameters that were initialised.
/// Errors: failure (1) for damaged files, and for tensors that are missing, unexpected or of another shape.
std::vector<std::string> load_weights(engine&, const std::filesystem::path& path, const placement& = {},
                                      std::vector<std::string>* notes = nullptr);

}  // namespace rankc::runtime
