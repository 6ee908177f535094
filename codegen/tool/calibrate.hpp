// SPDX-License-Identifier: Apache-2.0
// `rankc calibrate`: fits the constants of a GPU to the kernel times that rankc-calibrate measured.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

#include <istream>
#include <string>
#include <vector>

namespace rankc::tool {

/// A timed kernel. Units: seconds, bytes.
struct timed_kernel {
  std::string name;
  long long tokens = 0, in = 0, out = 0;            // of a GEMM
  long long rows = 0, seq = 0, heads = 0, dim = 0;  // of attention
  double bytes = 0;                                 // of a memory-bound kernel
  double seconds = 0;
};

/// A sustained load. Units: seconds of a call, watts.
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
/// Reads the rows of a file of this name.
/// Errors: RC8000 for a line that rankc-calibrate does not write; RC8001 if no line names the GPU.
timed_gpu read_timed(std::istream& lines, const std::string& file);

/// The predicted time of a kernel; 0 if no constant is fitted to such kernels.
double predicted(const cost_model::gpu_speed&, const timed_kernel&);

/// The constants that fit every other row best. Constants that rankc-calibrate does not measure are those of
/// `other`: links, and stated values.
cost_model::gpu_speed fit(const timed_gpu&, cost_model::gpu_speed other);

/// Prints the constants of a file of rows, named after the file, and how far their predictions are from the
/// rows, fitted or not.
/// Errors: 1 if the file cannot be read.
int calibrate(const std::string& file, std::ostream& out, std::ostream& errors);

}  // namespace rankc::tool
