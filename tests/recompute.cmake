# Plans that recompute, beside the same plans that keep everything.
add_library(rankc_recompute_plans STATIC recompute/plans.cpp)
target_include_directories(rankc_recompute_plans PRIVATE "${rankc_SOURCE_DIR}/dsl/plans")
target_link_libraries(rankc_recompute_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
target_compile_options(rankc_recompute_plans PRIVATE $<$<CONFIG:Release>:-O1>)
add_executable(rankc_recompute_generate recompute/generate.cpp)
target_link_libraries(rankc_recompute_generate PRIVATE rankc_recompute_plans rankc::codegen)

set(out "${CMAKE_CURRENT_BINARY_DIR}/recompute_programs")
add_custom_command(OUTPUT "${out}/registry.cpp" COMMAND rankc_recompute_generate "${out}"
  DEPENDS rankc_recompute_generate COMMENT "Generating the programs that recompute" VERBATIM)
add_executable(rankc_recompute_test recompute/recompute_test.cpp recompute/lowering_test.cpp "${out}/registry.cpp")
target_include_directories(rankc_recompute_test PRIVATE programs odd "${out}")
target_link_libraries(rankc_recompute_test PRIVATE rankc_recompute_plans rankc::codegen rankc::runtime_host rankc::runtime_tools rankc_test_main)
set_source_files_properties("${out}/registry.cpp" PROPERTIES COMPILE_OPTIONS -O0)  # most of its time are headers
add_test(NAME recompute COMMAND rankc_recompute_test)
