# Precompiled headers of the libraries, and of plans, which are compiled without optimisation.
find_package(fmt REQUIRED)

rankc_precompile(rankc_pch_libraries LIBRARIES fmt::fmt OPTIONS $<$<CONFIG:Release>:-O1>
  HEADERS <fmt/format.h> ${rankc_pch_standard_headers})
rankc_use_precompiled(rankc_pch_libraries
  rankc_certificate rankc_codegen rankc_equivalence rankc_launch rankc_proof rankc_tokenizer rankc_tool_commands rankc_trainer rankc_verify)
rankc_precompile(rankc_pch_plans LIBRARIES rankc::codegen OPTIONS -O0
  HEADERS <rankc/rankc.hpp> <rankc/codegen/generator.hpp> <filesystem> <functional> <map> <set>)
