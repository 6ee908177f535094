# The check that rank programs compute the model: on lowered programs, on changed ones, and on handmade ones.
add_library(rankc_equivalence_testing STATIC codegen/equivalence/subject.cpp)
target_link_libraries(rankc_equivalence_testing PUBLIC rankc::codegen rankc::equivalence rankc::verify PRIVATE rankc_warnings)
target_compile_options(rankc_equivalence_testing PRIVATE $<$<CONFIG:Release>:-O1>)

add_executable(rankc_equivalence_test
  codegen/equivalence/accepted_test.cpp
  codegen/equivalence/documents_test.cpp
  codegen/equivalence/refused_test.cpp
  codegen/equivalence/algebra_test.cpp
  codegen/equivalence/draws_test.cpp
  codegen/equivalence/by_hand_test.cpp
  codegen/equivalence/shards_by_hand_test.cpp
  codegen/equivalence/sharded_test.cpp
  codegen/equivalence/published.cpp
  codegen/equivalence/catalogues_test.cpp
  codegen/equivalence/published_test.cpp
  codegen/equivalence/damage_test.cpp
  codegen/equivalence/chunks_test.cpp
  codegen/equivalence/rings_test.cpp
  codegen/equivalence/groups_test.cpp
  codegen/equivalence/memory_test.cpp
  codegen/equivalence/places_test.cpp
  codegen/equivalence/balance_test.cpp
  codegen/equivalence/experts_test.cpp
  codegen/equivalence/steps_test.cpp
  codegen/equivalence/attributes_test.cpp
  codegen/equivalence/fields_test.cpp
  codegen/equivalence/forged_test.cpp
  codegen/equivalence/log_sum_exps_test.cpp
  codegen/equivalence/narrow_sums_test.cpp
  codegen/equivalence/facts_read_test.cpp
  codegen/equivalence/declared_facts_test.cpp
  codegen/equivalence/own_rows_test.cpp
  codegen/equivalence/own_rows_kinds_test.cpp
  codegen/equivalence/optimizer_calls_test.cpp)
target_include_directories(rankc_equivalence_test PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${rankc_SOURCE_DIR}/codegen")
target_link_libraries(rankc_equivalence_test PRIVATE rankc_equivalence_testing rankc_example_plans rankc_odd_plans rankc_training_plans rankc_drawn_plans rankc_test_plans rankc_test_main)
add_test(NAME equivalence COMMAND rankc_equivalence_test)
rankc_every_mutant(equivalence rankc_equivalence_test "a damaged certificate*,the example plans*,every schedule*,odd models compute*,plans that adapt*")
