# The CUDA core's tests. Those labelled gpu1 and gpu2 need that many GPUs and are skipped (77) without; the refusals
# and the choices of products run anywhere.
find_package(CUDAToolkit REQUIRED)

add_library(rankc_cuda_test_main STATIC runtime/core/cuda/main.cpp)
target_link_libraries(rankc_cuda_test_main PRIVATE CUDA::cudart rankc_test_said)

# A test that needs the number `gpus` of GPUs.
function(rankc_cuda_test name gpus)
  set(number "${CMAKE_CURRENT_BINARY_DIR}/gpus_of_test_${gpus}.cpp")
  file(CONFIGURE OUTPUT "${number}" CONTENT "extern const int gpus_of_test = ${gpus};\n")
  add_executable(${name} ${ARGN} "${number}")
  target_link_libraries(${name} PRIVATE rankc_cuda_test_main rankc::runtime_cuda doctest::doctest rankc_warnings)
  if(NOT RANKC_GPU_PROGRAMS)  # Without a GPU most of these tests are compiled and then skipped.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(gpus GREATER 0)
    set_tests_properties(${name} PROPERTIES LABELS gpu${gpus} SKIP_RETURN_CODE 77 RUN_SERIAL ON)
  endif()
endfunction()

rankc_cuda_test(runtime_cuda_refusals 0 runtime/core/cuda/engine/install_refusals_test.cpp)
rankc_cuda_test(runtime_cuda_products 0 runtime/core/cuda/linear/product_choices_test.cpp)
# Only the core's library; the test replaces every library below it.
add_executable(runtime_cuda_contexts
  runtime/core/cuda/contexts/contexts_test.cpp runtime/core/cuda/contexts/fake_cuda.cpp runtime/core/cuda/contexts/marks_test.cpp
  runtime/core/cuda/contexts/teardown_test.cpp)
add_dependencies(runtime_cuda_contexts rankc_runtime_cuda)
target_include_directories(runtime_cuda_contexts PRIVATE
  "${rankc_SOURCE_DIR}/runtime/core" ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE_DIR})
target_link_libraries(runtime_cuda_contexts PRIVATE
  $<TARGET_FILE:rankc_runtime_cuda> Threads::Threads ${CMAKE_DL_LIBS} rankc_test_main)
add_test(NAME runtime_cuda_contexts COMMAND runtime_cuda_contexts)
rankc_cuda_test(runtime_cuda_kernels 1
  runtime/core/cuda/elementwise/activations_test.cpp
  runtime/core/cuda/attention/attention_test.cpp
  runtime/core/cuda/attention/chunk_attention_test.cpp
  runtime/core/cuda/attention/sinks_test.cpp
  runtime/core/cuda/elementwise/bias_test.cpp
  runtime/core/cuda/loss/cross_entropy_test.cpp
  runtime/core/cuda/elementwise/embedding_test.cpp
  runtime/core/cuda/fp8/fp8_test.cpp
  runtime/core/cuda/linear/linear_fused_test.cpp
  runtime/core/cuda/elementwise/gates_test.cpp
  runtime/core/cuda/linear/linear_test.cpp
  runtime/core/cuda/norms/norms_test.cpp
  runtime/core/cuda/elementwise/optimizer_test.cpp
  runtime/core/cuda/communication/parts_test.cpp
  runtime/core/cuda/elementwise/rope_test.cpp
  runtime/core/cuda/elementwise/optimizer_rounding_test.cpp
  runtime/core/cuda/loss/padding_test.cpp
  runtime/core/cuda/loss/softmax_test.cpp
  runtime/core/cuda/linear/linear_tuning_test.cpp)
rankc_cuda_test(runtime_cuda_grouped 1 runtime/core/cuda/experts/grouped_test.cpp)
rankc_cuda_test(runtime_cuda_engine 1 runtime/core/cuda/engine/engine_test.cpp)
rankc_cuda_test(runtime_cuda_beside 1 runtime/core/cuda/engine/concurrent_lanes_test.cpp runtime/core/cuda/engine/meet.cu)
rankc_cuda_test(runtime_cuda_trace 1 runtime/core/cuda/progress/trace_test.cpp)
rankc_cuda_test(runtime_cuda_step_calls 1 runtime/core/cuda/engine/step_calls_test.cpp)
set(counted cudaGraphLaunch cudaMalloc cudaMallocHost cudaHostAlloc cudaFree cudaFreeHost cudaMemcpy cudaMemcpyAsync
  cudaMemsetAsync __cudaLaunchKernel cudaStreamBeginCapture cudaStreamSynchronize cudaDeviceSynchronize)
list(TRANSFORM counted PREPEND "LINKER:--wrap=")
target_link_options(runtime_cuda_step_calls PRIVATE ${counted})
rankc_cuda_test(runtime_cuda_collectives 2 runtime/core/cuda/communication/communicate_test.cpp)
rankc_cuda_test(runtime_cuda_by_rows 2 runtime/core/cuda/communication/by_rows_test.cpp)
rankc_cuda_test(runtime_cuda_pipeline 2 runtime/core/cuda/communication/peer_edges_test.cpp)
rankc_cuda_test(runtime_cuda_trace_pipeline 2 runtime/core/cuda/progress/trace_pipeline_test.cpp)
if(RANKC_GPU_PROGRAMS)
  foreach(test IN ITEMS collectives pipeline trace_pipeline)
    rankc_on_one_gpu(runtime_cuda_${test} 2 runtime_cuda_${test})
  endforeach()
endif()
add_library(rankc_cuda_fault OBJECT runtime/core/cuda/failures/fault.cu)
target_link_libraries(rankc_cuda_fault PRIVATE rankc::runtime_cuda)
# A failing rank leaves its GPU unusable for the rest of the process, so each of these tests is a separate
# process.
foreach(failure fault_in_collective fault_in_pipeline fault_by_rows throw_in_install)
  rankc_cuda_test(runtime_cuda_${failure} 2
    runtime/core/cuda/failures/${failure}_test.cpp $<TARGET_OBJECTS:rankc_cuda_fault>)
  set_tests_properties(runtime_cuda_${failure} PROPERTIES TIMEOUT 60)
endforeach()

add_executable(runtime_cuda_processes_program runtime/core/cuda/processes/program.cpp
  $<TARGET_OBJECTS:rankc_cuda_fault>)
target_link_libraries(runtime_cuda_processes_program
  PRIVATE rankc::runtime_cuda rankc::trainer rankc_warnings)
rankc_cuda_test(runtime_cuda_processes 2 runtime/core/cuda/processes/processes_test.cpp)
add_dependencies(runtime_cuda_processes runtime_cuda_processes_program)
target_compile_definitions(runtime_cuda_processes
  PRIVATE RANKC_TEST_PROGRAM="$<TARGET_FILE:runtime_cuda_processes_program>" RANKC_TEST_WITHOUT_GPUS=false
  $<$<BOOL:${RANKC_INJECT}>:RANKC_INJECT>)
set_tests_properties(runtime_cuda_processes PROPERTIES TIMEOUT 240)

# Injected faults in the same program on a machine without a GPU.
if(RANKC_INJECT)
  add_executable(runtime_cuda_faked_program runtime/core/cuda/processes/program.cpp
    runtime/core/cuda/contexts/fake_cuda.cpp runtime/core/cuda/contexts/fake_graphs.cpp)
  add_dependencies(runtime_cuda_faked_program rankc_runtime_cuda)
  target_include_directories(runtime_cuda_faked_program PRIVATE
    "${rankc_SOURCE_DIR}/runtime/core" ${CUDAToolkit_INCLUDE_DIRS} ${NCCL_INCLUDE_DIR})
  target_link_libraries(runtime_cuda_faked_program PRIVATE
    $<TARGET_FILE:rankc_runtime_cuda> rankc::trainer Threads::Threads ${CMAKE_DL_LIBS})
  add_executable(runtime_cuda_faked runtime/core/cuda/processes/processes_test.cpp)
  target_link_libraries(runtime_cuda_faked PRIVATE rankc_test_main)
  target_include_directories(runtime_cuda_faked PRIVATE "${rankc_SOURCE_DIR}/runtime/core")
  add_test(NAME runtime_cuda_faked COMMAND runtime_cuda_faked "-tc=a rank that ends or hangs*,a collective that hangs*,calls that fail*,choices of products*")
  add_dependencies(runtime_cuda_faked runtime_cuda_faked_program)
  target_compile_definitions(runtime_cuda_faked PRIVATE RANKC_INJECT RANKC_TEST_WITHOUT_GPUS=true
    RANKC_TEST_PROGRAM="$<TARGET_FILE:runtime_cuda_faked_program>")
  set_tests_properties(runtime_cuda_faked PROPERTIES TIMEOUT 60)
endif()
