// SPDX-License-Identifier: Apache-2.0
#include "step.hpp"

#include "fabric.hpp"
#include "tracer.hpp"

namespace rankc::runtime::host {

void run_part(rank& r, void (*body)(rank&)) {
  fabric& wires = *r.wires;
  try {
    if (r.computes_on != 0) wires.run_actions(r);
    else body(r);
    if (r.trace != nullptr) r.trace->end();
    wires.finish(r);
  } catch (const failure& f) {
    wires.fail(f.code, place(r) + ": " + f.what());
  } catch (const std::exception& e) {
    wires.fail(70, place(r) + ": " + e.what());
  }
}

void look_past_the_end(const local_rank& of) {
  if (of.memory().intact()) return;
  const rank& r = of.main();
  r.wires->fail(70, place(r.index, r.input.step, "end of the step") +
                        ": a kernel has written past the arena of " + std::to_string(of.memory().size()) +
                        " bytes");
}

}  // namespace rankc::runtime::host
