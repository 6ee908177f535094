# Proves a lowered program free of deadlock and races, writes the certificate and checks it again.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

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
  proof/sum_facts.cpp
  proof/shard_groups.cpp
  proof/sums.cpp
  proof/prove.cpp
  proof/fold_calls.cpp
  proof/certificate.cpp
  proof/verify_json.cpp
  proof/verify_model.cpp
  proof/verify_read.cpp
  proof/read_certificate.cpp
  proof/verify_schedule.cpp
  proof/verify_operands.cpp
  proof/verify_represented.cpp
  proof/verify_ends.cpp
  proof/verify_memory.cpp
  proof/verify_by_rows.cpp
  proof/verify_sums.cpp
  proof/verify_totals.cpp
  proof/verify_demanded.cpp
  proof/verify.cpp)
add_library(rankc::proof ALIAS rankc_proof)
set_target_properties(rankc_proof PROPERTIES EXPORT_NAME proof UNITY_BUILD ON)
target_include_directories(rankc_proof PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<BUILD_INTERFACE:${rankc_SOURCE_DIR}/runtime/core>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rankc_proof PUBLIC cxx_std_20)
target_link_libraries(rankc_proof PRIVATE
  fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json> $<BUILD_INTERFACE:rankc_warnings>)
