# Plans that users may write and no other test has: generated, compiled, trained, held to finite differences.
find_package(nlohmann_json REQUIRED)
add_library(rankc_odd_plans STATIC odd/plans.cpp)
target_link_libraries(rankc_odd_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
target_compile_options(rankc_odd_plans PRIVATE $<$<CONFIG:Release>:-O1>)
add_executable(rankc_odd_generate odd/generate.cpp)
target_link_libraries(rankc_odd_generate PRIVATE rankc_odd_plans rankc::codegen)

set(odd_programs "${CMAKE_CURRENT_BINARY_DIR}/odd")
add_custom_command(OUTPUT "${odd_programs}/registry.cpp" COMMAND rankc_odd_generate "${odd_programs}"
  DEPENDS rankc_odd_generate COMMENT "Generating the odd plans' programs" VERBATIM)
add_executable(rankc_odd_test odd/odd_test.cpp "${odd_programs}/registry.cpp")
target_include_directories(rankc_odd_test PRIVATE programs "${odd_programs}")
target_link_libraries(rankc_odd_test PRIVATE rankc::runtime_host rankc::runtime_tools rankc_test_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_odd_test PRIVATE RANKC_ODD_FAMILIES=17 RANKC_ODD_PLANS=57)
add_test(NAME odd COMMAND rankc_odd_test)
