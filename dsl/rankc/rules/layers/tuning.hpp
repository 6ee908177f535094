// SPDX-License-Identifier: Apache-2.0
// RC246 to RC249: the parameters that a recipe freezes, adapts with LoRA and trains. Every name is that of a
// parameter, no name is in two lists, only linear reads adapted parameters, and some parameter is trained.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/ops/linear.hpp>

#include <string_view>
#include <vector>

namespace rankc::detail {

/// Collects the parameters that layers declare, and checks the names of a recipe against them.
class tuning {
 public:
  constexpr void add(const trace& t) {
    for (const weight_info& w : t.weights) {
      trains_ |= w.trainable;
      if (!w.name.part.empty()) continue;
      declared& known = find(w.name.declared);
      known.trainable &= w.trainable;
      for (std::size_t i = 0; i < t.forward_ops; ++i)
        for (int in : t.ops[i].in)
          if (in == w.id && t.ops[i].kind != &ops::linear && known.reader.empty())
            known.reader = t.ops[i].kind->name;
    }
  }

  constexpr void check(report& out, const training& r, bool inference) const {
    const std::size_t before = out.size();
    check_names(out, "frozen", r.frozen);
    check_names(out, "lora.targets", r.lora.targets);
    check_names(out, "lora.trained", r.lora.trained);
    if (out.size() > before) return;
    for (std::string_view name : r.lora.targets.all()) check_target(out, name);
    for (std::string_view name : r.lora.trained.all()) check_trained(out, name, r);
    if (out.size() == before && !inference && !trains_)
      refuse(out, 249) << "nothing is trained: every parameter is frozen; leave one out of frozen, take "
                          "lora, or a schedule with "
                          "inference=true";
  }

 private:
  struct declared {
    std::string_view name;
    bool trainable = true;         // trained in all layers
    std::string_view reader = "";  // an op other than linear that reads it
  };

  constexpr declared& find(std::string_view name) {
    for (declared& d : all_)
      if (d.name == name) return d;
    all_.push_back({name});
    return all_.back();
  }
  constexpr const declared* find(std::string_view name) const {
    for (const declared& d : all_)
      if (d.name == name) return &d;
    return nullptr;
  }
  constexpr void put_names(sentence& s, bool of_linear) const {
    const char* separator = "";
    for (const declared& d : all_) {
      if (of_linear && !d.reader.empty()) continue;
      s << separator << d.name;
      separator = ", ";
    }
  }

  /// RC246: every name of a list is that of a declared parameter.
  constexpr void check_names(report& out, std::string_view list, const parameter_names& names) const {
    for (std::string_view name : names.all()) {
      if (find(name)) continue;
      sentence& s = refuse(out, 246) << list << " names '" << name
                                     << "', and no layer declares a parameter so; they are ";
      put_names(s, false);
    }
  }
  /// RC247: only linear reads a parameter that LoRA adapts.
  constexpr void check_target(report& out, std::string_view name) const {
    const declared& d = *find(name);
    if (d.reader.empty()) return;
    sentence& s = refuse(out, 247) << "lora.targets names '" << name << "', which " << d.reader
                                   << " reads; LoRA adapts weights that only linear reads: ";
    put_names(s, true);
  }
  /// RC248: a parameter of lora.trained is neither adapted nor frozen.
  constexpr void check_trained(report& out, std::string_view name, const training& r) const {
    const auto refused = [&]() -> sentence& {
      return refuse(out, 248) << "lora.trained names '" << name << "', ";
    };
    if (r.lora.targets.has(name))
      refused() << "and so does lora.targets, which keeps it as it is; name it in one of them";
    else if (r.frozen.has(name)) refused() << "and so does frozen; name it in one of them";
    else if (!find(name)->trainable)
      refused() << "which its layer freezes; leave it out, or frozen() out of the layer";
  }

  std::vector<declared> all_;
  bool trains_ = false;
};

}  // namespace rankc::detail
