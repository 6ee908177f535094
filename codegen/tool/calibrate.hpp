// SPDX-License-Identifier: Apache-2.0
// `rankc calibrate`: from the times of kernels that rankc-calibrate measured to the constants of a GPU.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

#include <istream>
#include <string>
#include <vector>

namespace rankc::tool {

/// A kernel as it was timed. Units: seconds, bytes.
struct timed_kernel {
  std::string name;
  long long tokens = 0, in = 0, out = 0;            // of a product
  long long rows = 0, seq = 0, heads = 0, dim = 0;  // of attention
  double bytes = 0;                                 // of a pass over memory
  double seconds = 0;
};

/// A load that lasted. Units: seconds of a call, watts.
struct timed_load {
  std::string name;
  double operations = 0, bytes = 0, seconds = 0, watts = 0;
  int dim = 0;
};

struct timed_gpu {
  int processors = 0;
  std::vector<timed_kernel> kernels;
  std::vector<timed_load> loads;
};
/// The rows of a file of this name.
/// Errors: RC8000 for a line that rankc-calibrate does not write; RC8001 where none names the GPU.
timed_gpu read_timed(std::istream& lines, const std::string& file);

/// What a kernel takes by the constants; 0 of one that no constant is fitted by.
double predicted(const cost_model::gpu_speed&, const timed_kernel&);

/// The constants that come closest to every other row. What rankc-calibrate does not measure is as another
/// GPU has it: links, and what is stated.
cost_model::gpu_speed fit(const timed_gpu&, cost_model::gpu_speed other);

/// Write the constants of a file of rows, by the file's name, and how far they are from the rows that they
/// were fitted by and from the others.
/// Errors: 1 where the file cannot be read.
int calibrate(const std::string& file, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
