# Plans by their optimizer: programs on the host, and what their generator makes of them.
add_library(rankc_optimizer_plans STATIC optimizer/plans.cpp)
target_link_libraries(rankc_optimizer_plans PUBLIC rankc::dsl PRIVATE rankc_warnings)
target_compile_options(rankc_optimizer_plans PRIVATE $<$<CONFIG:Release>:-O1>)
add_executable(rankc_optimizer_generate optimizer/generate.cpp)
target_link_libraries(rankc_optimizer_generate PRIVATE rankc_optimizer_plans rankc::codegen)

set(out "${CMAKE_CURRENT_BINARY_DIR}/optimizer_programs")
add_custom_command(OUTPUT "${out}/registry.cpp" COMMAND rankc_optimizer_generate host "${out}"
  DEPENDS rankc_optimizer_generate COMMENT "Generating the programs of several optimizers" VERBATIM)
add_executable(rankc_optimizer_test optimizer/update_test.cpp optimizer/layouts_test.cpp optimizer/checkpoint_test.cpp
  optimizer/lowering_test.cpp "${out}/registry.cpp")
target_include_directories(rankc_optimizer_test PRIVATE programs "${out}")
target_link_libraries(rankc_optimizer_test PRIVATE rankc_optimizer_plans rankc::codegen rankc::runtime_host rankc::runtime_tools rankc_test_main)
set_source_files_properties("${out}/registry.cpp" PROPERTIES COMPILE_OPTIONS -O0)  # most of its time are headers
add_test(NAME optimizer COMMAND rankc_optimizer_test)

if(TARGET rankc::runtime_cuda)
  set(out "${CMAKE_CURRENT_BINARY_DIR}/optimizer_cuda_programs")
  add_custom_command(OUTPUT "${out}/registry.cpp" COMMAND rankc_optimizer_generate cuda "${out}"
    DEPENDS rankc_optimizer_generate COMMENT "Generating the programs of several optimizers (cuda)" VERBATIM)
  foreach(gpus IN ITEMS 1 2)
    add_executable(optimizer_cuda_gpu${gpus} runtime/cuda/main.cpp optimizer/cuda_test.cpp "${out}/registry.cpp")
    target_include_directories(optimizer_cuda_gpu${gpus} PRIVATE programs "${out}")
    target_link_libraries(optimizer_cuda_gpu${gpus} PRIVATE rankc::runtime_cuda rankc::runtime_tools doctest::doctest rankc_warnings)
    target_compile_definitions(optimizer_cuda_gpu${gpus} PRIVATE RANKC_TEST_GPUS=${gpus})
    add_test(NAME optimizer_cuda_gpu${gpus} COMMAND optimizer_cuda_gpu${gpus})
    set_tests_properties(optimizer_cuda_gpu${gpus} PROPERTIES LABELS gpu${gpus} SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endforeach()
endif()
