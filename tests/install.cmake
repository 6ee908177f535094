# Projects outside rankc that use it in each of the three ways. Those that build rankc again do so without
# optimization. With rankc's own flags they would still miss its unity files in the compiler's cache, which
# identifies them by their path in the build folder.
set(prefix "${CMAKE_CURRENT_BINARY_DIR}/install/prefix")
add_test(NAME install/install COMMAND ${CMAKE_COMMAND} --install "${PROJECT_BINARY_DIR}" --prefix "${prefix}")
set_tests_properties(install/install PROPERTIES FIXTURES_SETUP rankc_installed)

function(rankc_outside_project name)
  set(options "-G${CMAKE_GENERATOR}" "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
              "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER}" "-DCMAKE_CXX_FLAGS=${CMAKE_CXX_FLAGS}"
              ${ARGN})
  add_test(NAME install/${name} COMMAND ${CMAKE_COMMAND}
    "-DPROJECT=${CMAKE_CURRENT_SOURCE_DIR}/install/${name}" "-DBUILD=${CMAKE_CURRENT_BINARY_DIR}/install/${name}"
    "-DOPTIONS=${options}" -P "${CMAKE_CURRENT_SOURCE_DIR}/install/run.cmake")
  set_tests_properties(install/${name} PROPERTIES TIMEOUT 1200 PROCESSORS 2)
endfunction()

# A wrong PLAN or NAME is refused when an outside project is configured.
set(boost_includes)
foreach(folder IN LISTS Boost_INCLUDE_DIRS)
  list(APPEND boost_includes -isystem "${folder}")
endforeach()
foreach(name IN ITEMS names every_name)
  add_test(NAME install/${name} COMMAND ${CMAKE_COMMAND}
    "-DPROJECT=${CMAKE_CURRENT_SOURCE_DIR}/install/names"
    "-DMODULE=${PROJECT_SOURCE_DIR}/codegen/cmake/rankc_program.cmake"
    "-DBUILD=${CMAKE_CURRENT_BINARY_DIR}/install/${name}"
    "-DOPTIONS=-G${CMAKE_GENERATOR};-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
    "-DCOMPILER=${CMAKE_CXX_COMPILER};-std=c++20;-I${PROJECT_SOURCE_DIR}/dsl;-I${PROJECT_SOURCE_DIR}/runtime/core;-I${PROJECT_SOURCE_DIR}/codegen;${boost_includes}"
    -DEVERY=$<STREQUAL:${name},every_name> -P "${CMAKE_CURRENT_SOURCE_DIR}/install/names.cmake")
endforeach()
set_tests_properties(install/every_name PROPERTIES LABELS long)

add_test(NAME install/optimization COMMAND ${CMAKE_COMMAND}
  "-DPROJECTS=${CMAKE_CURRENT_SOURCE_DIR}/install" "-DRANKC_SOURCE=${PROJECT_SOURCE_DIR}"
  "-DMODULE=${PROJECT_SOURCE_DIR}/codegen/cmake/rankc_program.cmake"
  "-DBUILD=${CMAKE_CURRENT_BINARY_DIR}/install/optimization"
  "-DOPTIONS=-G${CMAKE_GENERATOR};-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}"
  -P "${CMAKE_CURRENT_SOURCE_DIR}/install/optimization.cmake")

rankc_outside_project(find_package "-DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}" -DCMAKE_CXX_FLAGS_RELEASE=-O1 "-DCMAKE_PREFIX_PATH=${prefix}"
  "-DSILU=${CMAKE_CURRENT_SOURCE_DIR}/odd/silu.hpp" "-DSHIPPED=${rankc_SOURCE_DIR}/generated/03_gpt_dp2_tp2_pp2/host")
set_tests_properties(install/find_package PROPERTIES FIXTURES_REQUIRED rankc_installed)
foreach(way IN ITEMS add_subdirectory fetch_content)
  rankc_outside_project(${way} -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= "-DRANKC_SOURCE=${PROJECT_SOURCE_DIR}" -DRANKC_CUDA=OFF
    -DRANKC_NATIVE=${RANKC_NATIVE} -DRANKC_INJECT=${RANKC_INJECT} -DRANKC_WARNINGS=${RANKC_WARNINGS} -DRANKC_WERROR=${RANKC_WERROR})
endforeach()
set_tests_properties(install/add_subdirectory install/fetch_content PROPERTIES LABELS long)  # both build rankc again
