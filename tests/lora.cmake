# Plans that train parts of low rank, or not everything.
add_library(rankc_lora_plans STATIC lora/plans.cpp)
target_include_directories(rankc_lora_plans PRIVATE "${rankc_SOURCE_DIR}/dsl/plans")
target_link_libraries(rankc_lora_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
target_compile_options(rankc_lora_plans PRIVATE $<$<CONFIG:Release>:-O1>)
add_executable(rankc_lora_generate lora/generate.cpp)
target_link_libraries(rankc_lora_generate PRIVATE rankc_lora_plans rankc::codegen)

set(out "${CMAKE_CURRENT_BINARY_DIR}/lora_programs")
add_custom_command(OUTPUT "${out}/registry.cpp" COMMAND rankc_lora_generate "${out}"
  DEPENDS rankc_lora_generate COMMENT "Generating the programs that train parts of low rank" VERBATIM)
add_executable(rankc_lora_test lora/files_test.cpp lora/gradients_test.cpp lora/layouts_test.cpp "${out}/registry.cpp")
target_include_directories(rankc_lora_test PRIVATE programs lora "${out}")
target_link_libraries(rankc_lora_test PRIVATE rankc_lora_plans rankc::codegen rankc::runtime_host rankc::runtime_tools rankc_test_main)
set_source_files_properties("${out}/registry.cpp" PROPERTIES COMPILE_OPTIONS -O0)  # most of its time are headers
add_test(NAME lora COMMAND rankc_lora_test)
