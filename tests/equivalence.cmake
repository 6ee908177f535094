# The check that rank programs compute the model: on lowered programs, on changed ones, and on handmade ones.
add_library(rankc_equivalence_testing STATIC equivalence/subject.cpp)
target_link_libraries(rankc_equivalence_testing PUBLIC rankc::codegen rankc::equivalence rankc::verify PRIVATE rankc_warnings)
target_compile_options(rankc_equivalence_testing PRIVATE $<$<CONFIG:Release>:-O1>)

add_executable(rankc_equivalence_test equivalence/accepted_test.cpp equivalence/documents_test.cpp equivalence/refused_test.cpp equivalence/algebra_test.cpp equivalence/draws_test.cpp
  equivalence/by_hand_test.cpp equivalence/shards_by_hand_test.cpp equivalence/sharded_test.cpp equivalence/published.cpp equivalence/catalogues_test.cpp equivalence/published_test.cpp equivalence/damage_test.cpp equivalence/chunks_test.cpp equivalence/rings_test.cpp equivalence/groups_test.cpp
  equivalence/memory_test.cpp equivalence/places_test.cpp equivalence/balance_test.cpp equivalence/experts_test.cpp equivalence/steps_test.cpp equivalence/attributes_test.cpp
  equivalence/fields_test.cpp equivalence/forged_test.cpp equivalence/log_sum_exps_test.cpp equivalence/narrow_sums_test.cpp equivalence/facts_read_test.cpp equivalence/declared_facts_test.cpp equivalence/own_rows_test.cpp equivalence/own_rows_kinds_test.cpp equivalence/optimizer_calls_test.cpp)
target_include_directories(rankc_equivalence_test PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}" "${rankc_SOURCE_DIR}/codegen")
target_link_libraries(rankc_equivalence_test PRIVATE rankc_equivalence_testing rankc_example_plans rankc_odd_plans rankc_training_plans rankc_drawn_plans rankc_test_plans rankc_test_main)
add_test(NAME equivalence COMMAND rankc_equivalence_test)
rankc_every_mutant(equivalence rankc_equivalence_test "a damaged certificate*,the example plans*,every schedule*,odd models compute*,plans that adapt*")
