# Installs headers, libraries, and the package that find_package(rankc CONFIG) reads. The CUDA runtime has a
# separate file of targets, so that a machine without a GPU toolkit can use the rest.
include(CMakePackageConfigHelpers)
set(package "${CMAKE_INSTALL_LIBDIR}/cmake/rankc")

install(TARGETS rankc_dsl rankc_certificate rankc_proof rankc_equivalence rankc_verify rankc_codegen rankc_runtime_host rankc_launch rankc_tokenizer rankc_trainer
  EXPORT rankcTargets FILE_SET HEADERS)
if(TARGET rankc_tool)
  install(TARGETS rankc_tool rankc_verify_program EXPORT rankcTargets)
endif()
install(EXPORT rankcTargets NAMESPACE rankc:: DESTINATION "${package}")

install(DIRECTORY dsl/rankc DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.hpp")
install(FILES
  codegen/rankc/codegen/certificate.hpp codegen/rankc/codegen/generator.hpp codegen/rankc/codegen/program.hpp
  codegen/rankc/codegen/equivalence.hpp codegen/rankc/codegen/prove.hpp codegen/rankc/codegen/specification.hpp
  codegen/rankc/codegen/verify.hpp
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rankc/codegen")
install(DIRECTORY runtime/core/rankc/runtime DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rankc"
  FILES_MATCHING PATTERN "*.hpp" PATTERN "cuda" EXCLUDE)
install(FILES runtime/lm_eval/rankc_lm.py DESTINATION "${CMAKE_INSTALL_DATADIR}/rankc")
install(DIRECTORY runtime/core/rankc/contract DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rankc")

set(modules runtime/cmake/cuda.cmake codegen/cmake/rankc_program.cmake codegen/cmake/declared_plans.cmake
  codegen/cmake/optimization.cmake runtime/core/host/openblas.cmake runtime/launch/gloo.cmake runtime/trainer/text_libraries.cmake)
if(TARGET rankc_runtime_cuda)
  install(TARGETS rankc_runtime_cuda EXPORT rankcCudaTargets)
  install(EXPORT rankcCudaTargets NAMESPACE rankc:: DESTINATION "${package}")
  install(DIRECTORY runtime/core/rankc/runtime/cuda DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/rankc/runtime")
  list(APPEND modules runtime/cmake/nccl.cmake runtime/cmake/cudnn.cmake)
endif()
install(FILES ${modules} DESTINATION "${package}")

configure_package_config_file(codegen/cmake/rankcConfig.cmake.in "${CMAKE_CURRENT_BINARY_DIR}/rankcConfig.cmake"
  INSTALL_DESTINATION "${package}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/rankcConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/rankcConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/rankcConfigVersion.cmake"
  DESTINATION "${package}")
