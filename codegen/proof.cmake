# Proves a lowered program free of deadlock and races.
find_package(fmt REQUIRED)

add_library(rankc_proof STATIC
  proof/structure.cpp
  proof/contents.cpp
  proof/by_rows.cpp
  proof/matching.cpp
  proof/operands.cpp
  proof/order.cpp
  proof/starts.cpp
  proof/clocks.cpp
  proof/accesses.cpp
  proof/prove.cpp)
add_library(rankc::proof ALIAS rankc_proof)
set_target_properties(rankc_proof PROPERTIES EXPORT_NAME proof UNITY_BUILD ON)
target_include_directories(rankc_proof PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<BUILD_INTERFACE:${rankc_SOURCE_DIR}/runtime/core>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rankc_proof PUBLIC cxx_std_20)
target_link_libraries(rankc_proof PRIVATE
  fmt::fmt $<BUILD_INTERFACE:rankc_warnings>)
