// SPDX-License-Identifier: Apache-2.0
// The expected numbers of jobs and of plans of a family.
#pragma once

extern const int jobs_of_family, plans_of_family;
