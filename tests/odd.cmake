# Plans that users may write and no other test has: generated, compiled, trained, held to finite differences.
find_package(nlohmann_json REQUIRED)
add_library(rankc_odd_plans STATIC odd/plans.cpp odd/techniques.cpp)
target_include_directories(rankc_odd_plans PRIVATE "${rankc_SOURCE_DIR}/dsl/plans")
target_link_libraries(rankc_odd_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
target_compile_options(rankc_odd_plans PRIVATE $<$<CONFIG:Release>:-O1>)
add_executable(rankc_odd_generate odd/generate.cpp)
target_link_libraries(rankc_odd_generate PRIVATE rankc_odd_plans rankc::codegen)

function(rankc_odd_programs target)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/odd_${target}")
  add_custom_command(OUTPUT "${out}/registry.cpp" COMMAND rankc_odd_generate ${target} "${out}"
    DEPENDS rankc_odd_generate COMMENT "Generating the odd plans' programs (${target})" VERBATIM)
  add_library(rankc_odd_${target} STATIC "${out}/registry.cpp")
  target_include_directories(rankc_odd_${target} PRIVATE programs odd "${out}")
  target_link_libraries(rankc_odd_${target} PUBLIC rankc::runtime_${target} rankc::runtime_tools PRIVATE rankc_warnings)
  target_compile_options(rankc_odd_${target} PRIVATE -O0)  # most of their time are their headers
endfunction()
set(odd_counts RANKC_ODD_FAMILIES=41 RANKC_ODD_PLANS=273 RANKC_ODD_ON_ONE=85 RANKC_ODD_ON_TWO=69)

rankc_odd_programs(host)
add_executable(rankc_odd_test odd/certificate_test.cpp odd/checkpoint_test.cpp odd/coverage_test.cpp odd/odd_test.cpp odd/refused_test.cpp)
target_include_directories(rankc_odd_test PRIVATE programs)
target_link_libraries(rankc_odd_test PRIVATE rankc_odd_plans rankc::codegen rankc_odd_host rankc_test_main nlohmann_json::nlohmann_json)
target_compile_definitions(rankc_odd_test PRIVATE ${odd_counts})
add_test(NAME odd COMMAND rankc_odd_test)

if(TARGET rankc::runtime_cuda)
  rankc_odd_programs(cuda)
  target_sources(rankc_odd_cuda PRIVATE odd/silu.cu odd/square_loss.cu)
  add_executable(rankc_odd_cuda_test programs/cuda/main.cpp odd/cuda_test.cpp)
  target_include_directories(rankc_odd_cuda_test PRIVATE programs)
  target_link_libraries(rankc_odd_cuda_test PRIVATE rankc_odd_host rankc_odd_cuda doctest::doctest rankc_warnings
    nlohmann_json::nlohmann_json)
  target_compile_definitions(rankc_odd_cuda_test PRIVATE ${odd_counts})
  foreach(gpus IN ITEMS 1 2)
    add_test(NAME odd_cuda_gpu${gpus} COMMAND rankc_odd_cuda_test)
    set_tests_properties(odd_cuda_gpu${gpus} PROPERTIES ENVIRONMENT RANKC_TEST_GPUS=${gpus} LABELS gpu${gpus}
      SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endforeach()
endif()
