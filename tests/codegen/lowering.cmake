# Real plans are lowered: proofs, certificates, mutants, placement and the emitted text.
find_package(nlohmann_json REQUIRED)
add_executable(rankc_lowering_test
  codegen/passes/axes_test.cpp
  codegen/passes/explain_test.cpp
  codegen/passes/fusion_test.cpp
  codegen/passes/memory_test.cpp
  codegen/passes/opened_test.cpp
  codegen/passes/passes_test.cpp
  codegen/passes/proof_test.cpp
  codegen/passes/worlds_test.cpp
  codegen/emit/attention_engines_test.cpp
  codegen/emit/calls_test.cpp
  codegen/emit/memory_map_test.cpp
  codegen/emit/rank_head_test.cpp
  codegen/emit/rank_rules_test.cpp
  codegen/emit/layouts_test.cpp
  codegen/emit/separators_test.cpp
  codegen/emit/loops_test.cpp
  codegen/emit/page_lines_test.cpp
  codegen/emit/timeline_test.cpp)
target_include_directories(rankc_lowering_test PRIVATE "${rankc_SOURCE_DIR}/tests" "${rankc_SOURCE_DIR}/codegen")
target_link_libraries(rankc_lowering_test PRIVATE rankc_example_plans rankc_odd_plans rankc_experts_plans rankc_training_plans rankc_drawn_plans rankc_test_plans rankc::codegen rankc_proof_testing rankc_test_main nlohmann_json::nlohmann_json)
add_test(NAME codegen/lowering COMMAND rankc_lowering_test)
rankc_every_mutant(codegen/lowering rankc_lowering_test "mutants of lowered*,every test plan has*,no buffer makes*,the passes are*,the memory of*")
add_test(NAME codegen/lowering_long COMMAND rankc_lowering_test --no-skip --test-case=twenty*)
set_tests_properties(codegen/lowering_long PROPERTIES LABELS long TIMEOUT 3600)
