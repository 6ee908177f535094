# Plans by their optimizer: programs on the host, and what their generator makes of them.
add_library(rankc_optimizer_plans STATIC optimizer/plans.cpp)
target_link_libraries(rankc_optimizer_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
target_compile_options(rankc_optimizer_plans PRIVATE $<$<CONFIG:Release>:-O1>)
add_executable(rankc_optimizer_generate optimizer/generate.cpp)
target_link_libraries(rankc_optimizer_generate PRIVATE rankc_optimizer_plans rankc::codegen)

set(out "${CMAKE_CURRENT_BINARY_DIR}/optimizer_programs")
add_custom_command(OUTPUT "${out}/registry.cpp" COMMAND rankc_optimizer_generate "${out}"
  DEPENDS rankc_optimizer_generate COMMENT "Generating the programs of several optimizers" VERBATIM)
add_executable(rankc_optimizer_test optimizer/update_test.cpp optimizer/layouts_test.cpp optimizer/checkpoint_test.cpp
  optimizer/lowering_test.cpp "${out}/registry.cpp")
target_include_directories(rankc_optimizer_test PRIVATE programs "${out}")
target_link_libraries(rankc_optimizer_test PRIVATE rankc_optimizer_plans rankc::codegen rankc::runtime_host rankc::runtime_tools rankc_test_main)
set_source_files_properties("${out}/registry.cpp" PROPERTIES COMPILE_OPTIONS -O0)  # most of its time are headers
add_test(NAME optimizer COMMAND rankc_optimizer_test)
