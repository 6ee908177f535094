// SPDX-License-Identifier: Apache-2.0
// Which layers have a parameter in common, and what each is named in a checkpoint: RC214, RC224.
#pragma once
#include <rankc/diagnostic.hpp>
#include <rankc/typed/trace.hpp>

#include <string_view>
#include <vector>

namespace rankc::detail {

/// A parameter and the layers that have it, by the repeated layers before each.
struct parameter_use {
  weight_info as;
  std::string_view layer;  // that declares it
  int entry = 0;           // of the model's stack: that layer
  bool repeated = false;
  int first = 0, count = 1;  // numbers of the layers, where they are repeated: named "layers.N.<name>"
  std::vector<int> at = {};  // of each layer that stands alone: the repeated layers before it
};

/// Whether a parameter of a layer that stands alone has the name of one of a repeated layer.
constexpr bool is_named_alike(std::string_view alone, const parameter_use& repeated) {
  constexpr std::string_view prefix = "layers.";
  if (!alone.starts_with(prefix)) return false;
  alone.remove_prefix(prefix.size());
  long long number = 0;
  std::size_t digits = 0;
  while (digits < alone.size() && digits < 10 && alone[digits] >= '0' && alone[digits] <= '9')
    number = number * 10 + (alone[digits++] - '0');
  const bool is_number = digits == 1 || (digits > 1 && alone[0] != '0');
  return is_number && number >= repeated.first && number < repeated.first + repeated.count &&
         alone.substr(digits).starts_with(".") && alone.substr(digits + 1) == repeated.as.name;
}

/// The parameters of a model, layer by layer.
class parameter_book {
 public:
  /// A layer's parameters. `number`: of the repeated layers before it.
  constexpr void add(report& out, const trace& t, std::string_view layer, bool repeated, int number, int count) {
    const std::size_t earlier = uses_.size();
    for (const weight_info& w : t.weights)
      if (w.tied) tie(out, w, layer, repeated, number, earlier);
      else declare(out, {w, layer, entries_, repeated, number, count, {number}}, earlier);
    ++entries_;
  }

  /// RC214: parameters lie in one piece with what another layer shares, so that a layer can share one.
  constexpr void check_shared(report& out) const {
    for (std::size_t i = 0; i < shared_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (shared_[j].entry == shared_[i].entry && shared_[j].parameter != shared_[i].parameter) {
          refuse(out, 214) << "layer '" << shared_[i].layer << "' shares parameters '"
                           << uses_[shared_[j].parameter].as.name << "' and '" << uses_[shared_[i].parameter].as.name
                           << "' with other layers; a layer can share 1: declare the others without tied";
          return;
        }
  }

  constexpr const std::vector<parameter_use>& uses() const { return uses_; }

 private:
  constexpr void declare(report& out, const parameter_use& p, std::size_t earlier) {
    for (std::size_t i = 0; i < earlier; ++i) {
      const parameter_use& e = uses_[i];
      const bool both_alone = !p.repeated && !e.repeated && p.as.name == e.as.name;
      const bool one_repeated =
          p.repeated != e.repeated && is_named_alike(p.repeated ? e.as.name : p.as.name, p.repeated ? p : e);
      if (both_alone)
        refuse(out, 224) << "parameter '" << p.as.name << "' of layer '" << p.layer
                         << "' has the name of one of layer '" << e.layer
                         << "'; take that one with tied, or take another name";
      else if (one_repeated)
        refuse(out, 224) << "parameter '" << (p.repeated ? e.as.name : p.as.name) << "' of layer '"
                         << (p.repeated ? e.layer : p.layer) << "' has the name of one of the repeated layer '"
                         << (p.repeated ? p.layer : e.layer) << "'; take another name";
      if (both_alone || one_repeated) break;
    }
    uses_.push_back(p);
  }

  constexpr void tie(report& out, const weight_info& w, std::string_view layer, bool repeated, int number,
                     std::size_t earlier) {
    if (repeated) {
      refuse(out, 214)
          << "parameter '" << w.name << "' of layer '" << layer
          << "' is tied, but the layer is repeated; layers that stand alone can be tied: declare it with parameter";
      return;
    }
    std::size_t at = 0;
    while (at < earlier && (uses_[at].repeated || uses_[at].as.name != w.name)) ++at;
    if (at == earlier) {
      refuse(out, 214)
          << "parameter '" << w.name << "' of layer '" << layer
          << "' is tied, but no earlier layer that stands alone has one of that name; declare it with parameter";
      return;
    }
    parameter_use& owner = uses_[at];
    if (owner.as.holds != w.holds || owner.as.gradient != w.gradient) {
      complaint::put_shape(refuse(out, 214) << "parameter '" << w.name << "' of layer '" << layer << "' is ", w.holds);
      complaint::put_shape(out.back().text << " and that of an earlier layer ", owner.as.holds);
      out.back().text
          << "; tied parameters have one shape and one placement: declare this one with parameter, or make them alike";
      return;
    }
    if (owner.at.size() == 1) shared_.push_back({owner.layer, owner.entry, at});
    owner.at.push_back(number);
    shared_.push_back({layer, entries_, at});
  }

  struct sharing {
    std::string_view layer;
    int entry;
    std::size_t parameter;
  };
  int entries_ = 0;
  std::vector<parameter_use> uses_;
  std::vector<sharing> shared_;  // of layers that have a parameter in common with others
};

}  // namespace rankc::detail
