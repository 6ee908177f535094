# The CUDA core's tests. Those labelled gpu1 and gpu2 need that many GPUs and are skipped (77) without; the refusals
# run anywhere.
find_package(CUDAToolkit REQUIRED)

function(rankc_cuda_test name gpus)
  add_executable(${name} runtime/cuda/main.cpp ${ARGN})
  target_link_libraries(${name} PRIVATE rankc::runtime_cuda doctest::doctest rankc_warnings)
  target_compile_definitions(${name} PRIVATE RANKC_TEST_GPUS=${gpus})
  add_test(NAME ${name} COMMAND ${name})
  if(gpus GREATER 0)
    set_tests_properties(${name} PROPERTIES LABELS gpu${gpus} SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endif()
endfunction()

rankc_cuda_test(runtime_cuda_refusals 0 runtime/cuda/refusals_test.cpp)
rankc_cuda_test(runtime_cuda_kernels 1
  runtime/cuda/activations_test.cpp
  runtime/cuda/attention_test.cpp
  runtime/cuda/bias_test.cpp
  runtime/cuda/cross_entropy_test.cpp
  runtime/cuda/embedding_test.cpp
  runtime/cuda/fused_linear_test.cpp
  runtime/cuda/linear_test.cpp
  runtime/cuda/norms_test.cpp
  runtime/cuda/optimizer_test.cpp
  runtime/cuda/rope_test.cpp)
rankc_cuda_test(runtime_cuda_engine 1 runtime/cuda/engine_test.cpp)
rankc_cuda_test(runtime_cuda_collectives 2 runtime/cuda/collectives_test.cpp)
