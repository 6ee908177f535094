# NCCL::nccl, from the CUDA toolkit, the system, or NCCL_HOME. NCCL ships no CMake package of its own; a consumer's
# directory includes this file too, for the imported target is part of rankc::runtime_cuda's interface.
if(NOT TARGET NCCL::nccl)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS "$ENV{NCCL_HOME}/include" ${CUDAToolkit_INCLUDE_DIRS})
  find_library(NCCL_LIBRARY nccl HINTS "$ENV{NCCL_HOME}/lib" "${CUDAToolkit_LIBRARY_DIR}")
  mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
  if(NOT NCCL_INCLUDE_DIR OR NOT NCCL_LIBRARY)
    message(FATAL_ERROR
      "rankc: a CUDA compiler was found, but not NCCL (nccl.h, libnccl). Install libnccl-dev, or set NCCL_HOME to the "
      "folder that holds include/nccl.h and lib/libnccl.so, or configure with -DRANKC_CUDA=OFF for the host only.")
  endif()
  add_library(NCCL::nccl UNKNOWN IMPORTED)
  set_target_properties(NCCL::nccl PROPERTIES
    IMPORTED_LOCATION "${NCCL_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR}")
endif()
