// SPDX-License-Identifier: Apache-2.0
// The folders of oracles/families, and the plan's names for tensors of their files.
#pragma once
#include "folders.hpp"

namespace hugging_face {

inline fs::path folder_of_family(const std::string& family) {
  return fs::path(RANKC_TEST_ORACLES "/families") / family;
}

/// The part of a tensor's name after the number of its layer, and the plan's tensors that it joins.
struct family_tensor {
  std::string_view theirs;
  std::vector<std::string> ours;
};

/// The norms of a block in a family, whose names differ in meaning between families.
inline std::vector<family_tensor> norms_of(const std::string& family) {
  if (family == "olmo2")
    return {{"post_attention_layernorm.weight", {"post_norm1"}},
            {"post_feedforward_layernorm.weight", {"post_norm2"}}};
  if (family == "gemma3")
    return {{"input_layernorm.weight", {"norm1"}},
            {"post_attention_layernorm.weight", {"post_norm1"}},
            {"pre_feedforward_layernorm.weight", {"norm2"}},
            {"post_feedforward_layernorm.weight", {"post_norm2"}}};
  std::vector<family_tensor> norms{{"input_layernorm.weight", {"norm1"}},
                                   {"post_attention_layernorm.weight", {"norm2"}}};
  if (family == "glm4") {
    norms.push_back({"post_self_attn_layernorm.weight", {"post_norm1"}});
    norms.push_back({"post_mlp_layernorm.weight", {"post_norm2"}});
  }
  return norms;
}

/// The plan's tensors that a tensor of the files joins, in order.
inline std::vector<std::string> names_here(const std::string& family, const std::string& theirs) {
  if (theirs == "model.embed_tokens.weight") return {"wte"};
  if (theirs == "model.norm.weight") return {"norm"};
  if (theirs == "lm_head.weight") return {"lm_head"};
  static const std::vector<family_tensor> of_all{{"self_attn.q_proj.weight", {"wq"}},
                                                 {"self_attn.k_proj.weight", {"wk"}},
                                                 {"self_attn.v_proj.weight", {"wv"}},
                                                 {"self_attn.q_proj.bias", {"wq.bias"}},
                                                 {"self_attn.k_proj.bias", {"wk.bias"}},
                                                 {"self_attn.v_proj.bias", {"wv.bias"}},
                                                 {"self_attn.qkv_proj.weight", {"wq", "wk", "wv"}},
                                                 {"self_attn.o_proj.weight", {"wo"}},
                                                 {"self_attn.q_norm.weight", {"q_norm"}},
                                                 {"self_attn.k_norm.weight", {"k_norm"}},
                                                 {"mlp.gate_proj.weight", {"w1"}},
                                                 {"mlp.up_proj.weight", {"w3"}},
                                                 {"mlp.gate_up_proj.weight", {"w1", "w3"}},
                                                 {"mlp.down_proj.weight", {"w2"}}};
  const std::string first = "model.layers.";
  REQUIRE(theirs.starts_with(first));
  const std::string layer = "layers." + theirs.substr(first.size(), 2);
  const std::string_view end = std::string_view(theirs).substr(first.size() + 2);
  for (const auto& list : {of_all, norms_of(family)})
    for (const auto& [name, ours] : list) {
      if (name != end) continue;
      std::vector<std::string> all;
      for (const std::string& tensor : ours) all.push_back(layer + tensor);
      return all;
    }
  FAIL(theirs << " has no name here");
  return {};
}

}  // namespace hugging_face
