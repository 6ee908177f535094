// SPDX-License-Identifier: Apache-2.0
// RC214, RC224: parameters that several layers share, and the names of parameters in a checkpoint.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/trace/trace.hpp>

#include <string_view>
#include <vector>

namespace rankc::detail {

/// A parameter and the layers that use it.
struct parameter_use {
  weight_info as;
  std::string_view layer;  // the layer that declares it
  bool repeated = false;
  // If repeated: the number of the first layer, and of layers. Their names are "layers.N.<name>".
  int first = 0, count = 1;
  // For each single layer that uses it: the number of repeated layers before that layer.
  std::vector<int> at = {};
};

/// True if the name of a single layer's parameter is also that of a repeated layer's parameter.
constexpr bool is_named_alike(const parameter_name& other, const parameter_use& repeated) {
  std::string_view alone = other.declared;
  constexpr std::string_view prefix = "layers.";
  if (!alone.starts_with(prefix)) return false;
  alone.remove_prefix(prefix.size());
  long long number = 0;
  std::size_t digits = 0;
  while (digits < alone.size() && digits < 10 && alone[digits] >= '0' && alone[digits] <= '9')
    number = number * 10 + (alone[digits++] - '0');
  const bool is_number = digits == 1 || (digits > 1 && alone[0] != '0');
  return is_number && number >= repeated.first && number < repeated.first + repeated.count &&
         alone.substr(digits).starts_with(".") &&
         parameter_name(alone.substr(digits + 1), other.part) == repeated.as.name;
}

/// The parameters of a model, layer by layer.
class parameter_book {
 public:
  /// Adds a layer's parameters. `number`: the number of repeated layers before it.
  constexpr void add(report& out, const trace& t, std::string_view layer, bool repeated, int number,
                     int count) {
    const std::size_t earlier = uses_.size();
    for (const weight_info& w : t.weights)
      if (parameter_use* owner = w.handle.line ? find_owner(out, w, layer, repeated, earlier) : nullptr)
        share(out, *owner, w, layer, number);
      else declare(out, {w, layer, repeated, number, count, {number}}, earlier);
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
                         << "'; pass one parameter_handle to both to share it, or take another name";
      else if (one_repeated)
        refuse(out, 224) << "parameter '" << (p.repeated ? e.as.name : p.as.name) << "' of layer '"
                         << (p.repeated ? e.layer : p.layer)
                         << "' has the name of one of the repeated layer '"
                         << (p.repeated ? p.layer : e.layer) << "'; take another name";
      if (both_alone || one_repeated) break;
    }
    uses_.push_back(p);
  }

  /// The entry of a handle's parameter, made by the first layer that uses it; null if this layer is the
  /// first.
  constexpr parameter_use* find_owner(report& out, const weight_info& w, std::string_view layer,
                                      bool repeated, std::size_t earlier) {
    if (repeated)
      refuse(out, 214) << "parameter '" << w.name << "' of layer '" << layer
                       << "' is that of a handle, but the layer "
                       << "is repeated; layers that stand alone can share one: declare it by its name";
    for (std::size_t i = 0; i < earlier; ++i)
      if (is_same_parameter(uses_[i].as, w)) return &uses_[i];
    return nullptr;
  }

  constexpr void share(report& out, parameter_use& owner, const weight_info& w, std::string_view layer,
                       int number) {
    if (owner.as.trainable != w.trainable) {
      refuse(out, 214) << "parameter '" << w.name << "' is frozen in layer '"
                       << (w.trainable ? owner.layer : layer) << "' and trained in layer '"
                       << (w.trainable ? layer : owner.layer) << "'; freeze it in both, or in neither";
      return;
    }
    for (axis a : axes) {
      if (owner.as.gradient[a] == w.gradient[a]) continue;
      complaint::put(refuse(out, 214) << "the gradient of parameter '" << w.name << "' is ", w.gradient,
                     w.gradient[a]);
      complaint::put(out.back().text << " over " << name(a) << " in layer '" << layer << "' and ",
                     owner.as.gradient, owner.as.gradient[a]);
      out.back().text << " in layer '" << owner.layer
                      << "'; use it on values of one placement, or give each its own";
      return;
    }
    owner.at.push_back(number);
  }

  std::vector<parameter_use> uses_;
};

}  // namespace rankc::detail
