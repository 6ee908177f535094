// SPDX-License-Identifier: Apache-2.0
// What this declares is in a folder that is not searched before the compiler does.
#pragma once
#include "install/names/included.hpp"
