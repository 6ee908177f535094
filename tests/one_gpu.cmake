# Tests of several ranks on one GPU: the ranks share it, over communicators of our own. Such a run tests what
# programs compute, not how NCCL communicates. The streams of all ranks share the queues of one GPU, in which
# a waiting rank can be queued before the rank that it waits for. Plans of four ranks in a pipeline, dual_pipe_v
# on two, and some of the odd ones on two hang for this reason and are not among these tests.
add_library(rankc_one_gpu SHARED one_gpu/devices.cpp one_gpu/exchange.cu one_gpu/nccl.cpp)
target_include_directories(rankc_one_gpu PRIVATE ${NCCL_INCLUDE_DIR})
target_compile_features(rankc_one_gpu PRIVATE cxx_std_20)
target_link_libraries(rankc_one_gpu PRIVATE CUDA::cudart ${CMAKE_DL_LIBS})
set_target_properties(rankc_one_gpu PROPERTIES CUDA_RUNTIME_LIBRARY Shared)

# Runs a test again with `ranks` ranks on one GPU.
function(rankc_on_one_gpu test ranks)
  add_test(NAME ${test}_on_one COMMAND ${ARGN})
  set_tests_properties(${test}_on_one PROPERTIES LABELS gpu1 SKIP_RETURN_CODE 77 RUN_SERIAL ON ENVIRONMENT
    "LD_PRELOAD=$<TARGET_FILE:rankc_one_gpu>;RANKC_RANKS_ON_ONE_GPU=${ranks};RANKC_TEST_GPUS=${ranks};CUDA_MODULE_LOADING=EAGER;CUDA_DEVICE_MAX_CONNECTIONS=32" TIMEOUT 300)
endfunction()
