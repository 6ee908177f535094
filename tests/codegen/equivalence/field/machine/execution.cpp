// SPDX-License-Identifier: Apache-2.0
#include "execution.hpp"

#include "machine.hpp"

namespace execution {

namespace {

class run_once final : public model {
 public:
  explicit run_once(const rankc::codegen::specification& s) : run_(field::run_model(s)) {}
  outcome run(const rankc::codegen::program& p, unsigned seed, const loader* from) const override {
    return field::run_program(p, run_, seed, from);
  }

 private:
  field::model_run run_;
};

}  // namespace

#ifdef FIELD_IN_F64
std::shared_ptr<const model> in_f64(const rankc::codegen::specification& s) {
  return std::make_shared<run_once>(s);
}
#else
std::shared_ptr<const model> over_field(const rankc::codegen::specification& s) {
  return std::make_shared<run_once>(s);
}
#endif

}  // namespace execution
