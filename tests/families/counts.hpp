// SPDX-License-Identifier: Apache-2.0
// The numbers of jobs and of plans that a family's tests must find.
#pragma once

extern const int jobs_of_family, plans_of_family;
