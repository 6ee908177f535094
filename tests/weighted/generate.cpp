// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"
#include "write_programs.hpp"

int main(int argc, char** argv) { return write_programs({argc, argv}, weighted::plans()); }
