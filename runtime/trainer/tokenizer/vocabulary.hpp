// SPDX-License-Identifier: Apache-2.0
// Tokens by their texts, and the bytes of each token.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// Hashes texts so that a table of std::string finds a std::string_view.
struct text_hash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};
template <class Value>
using text_table = std::unordered_map<std::string, Value, text_hash, std::equal_to<>>;

class vocabulary {
 public:
  static constexpr std::int32_t none = -1, most = 1 << 22;  // ids are below `most`

  /// Assigns a token to an id. `bytes`: the bytes that the token stands for.
  void set(std::int32_t id, const std::string& token, std::string bytes) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= bytes_.size()) {
      bytes_.resize(at + 1);
      is_used_.resize(at + 1);
    }
    bytes_[at] = std::move(bytes);
    is_used_[at] = true;
    ids_[token] = id;
  }

  /// The id of a token; `none` if there is none.
  std::int32_t id_of(std::string_view token) const {
    const auto at = ids_.find(token);
    return at == ids_.end() ? none : at->second;
  }
  bool has(std::int32_t id) const {
    return id >= 0 && static_cast<std::size_t>(id) < is_used_.size() &&
           is_used_[static_cast<std::size_t>(id)];
  }
  /// The bytes of a token; empty for an id that no token has.
  std::string_view bytes_of(std::int32_t id) const {
    return has(id) ? std::string_view(bytes_[static_cast<std::size_t>(id)]) : std::string_view();
  }
  /// The largest id plus one.
  std::int32_t size() const { return static_cast<std::int32_t>(bytes_.size()); }
  std::size_t count() const { return ids_.size(); }

 private:
  text_table<std::int32_t> ids_;
  std::vector<std::string> bytes_;
  std::vector<bool> is_used_;
};

}  // namespace rankc::runtime
