# Checks that the programs of all ranks compute the model on one device. It uses neither the passes that
# lowered them nor the table of ops.
find_package(fmt REQUIRED)

add_library(rankc_equivalence STATIC
  equivalence/field.cpp
  equivalence/chance.cpp
  equivalence/facts.cpp
  equivalence/facts_read.cpp
  equivalence/facts_ports.cpp
  equivalence/facts_needs.cpp
  equivalence/fact_table.cpp
  equivalence/call_numbers.cpp
  equivalence/model.cpp
  equivalence/gradients.cpp
  equivalence/known_terms.cpp
  equivalence/sums.cpp
  equivalence/model_shapes.cpp
  equivalence/domain.cpp
  equivalence/contents.cpp
  equivalence/tiles.cpp
  equivalence/cell.cpp
  equivalence/cell_sequences.cpp
  equivalence/sight.cpp
  equivalence/cell_rounding.cpp
  equivalence/transfer.cpp
  equivalence/layout.cpp
  equivalence/types.cpp
  equivalence/unread.cpp
  equivalence/scratch.cpp
  equivalence/store.cpp
  equivalence/places.cpp
  equivalence/inputs.cpp
  equivalence/tails.cpp
  equivalence/collectives.cpp
  equivalence/shards.cpp
  equivalence/heads.cpp
  equivalence/slots.cpp
  equivalence/claims.cpp
  equivalence/claims_sums.cpp
  equivalence/blame.cpp
  equivalence/ownership.cpp
  equivalence/interpret.cpp
  equivalence/kernel.cpp
  equivalence/optimizer.cpp
  equivalence/exchange.cpp
  equivalence/check.cpp
  equivalence/steps.cpp)
add_library(rankc::equivalence ALIAS rankc_equivalence)
set_target_properties(rankc_equivalence PROPERTIES EXPORT_NAME equivalence UNITY_BUILD ON)
target_include_directories(rankc_equivalence PUBLIC
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}> $<BUILD_INTERFACE:${rankc_SOURCE_DIR}/runtime/core>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(rankc_equivalence PUBLIC cxx_std_20)
target_link_libraries(rankc_equivalence PRIVATE fmt::fmt $<BUILD_INTERFACE:rankc_warnings>)
