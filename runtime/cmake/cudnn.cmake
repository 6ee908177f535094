# CUDNN::cudnn, from the CUDA toolkit, the system, or CUDNN_HOME, where there is one: attention in bf16 is faster with
# it. cuDNN ships no CMake package of its own; a consumer's directory includes this file too, for a static
# rankc::runtime_cuda that was built with cuDNN links it.
if(NOT TARGET CUDNN::cudnn)
  find_path(CUDNN_INCLUDE_DIR cudnn_graph.h HINTS "$ENV{CUDNN_HOME}/include" ${CUDAToolkit_INCLUDE_DIRS})
  find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9
    HINTS "$ENV{CUDNN_HOME}/lib" "${CUDAToolkit_LIBRARY_DIR}" "${CUDAToolkit_LIBRARY_ROOT}/lib")
  mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)
  if(CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
    add_library(CUDNN::cudnn UNKNOWN IMPORTED)
    set_target_properties(CUDNN::cudnn PROPERTIES
      IMPORTED_LOCATION "${CUDNN_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${CUDNN_INCLUDE_DIR}")
  endif()
endif()
