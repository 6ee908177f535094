// SPDX-License-Identifier: Apache-2.0
// The plan comes from an included header, in a folder that only the compiler searches.
#pragma once
#include "install/names/included.hpp"
