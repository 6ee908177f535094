# What the passes make of real plans: proofs, certificates, mutants, placement.
add_executable(rankc_lowering_test codegen/lowering/proof_test.cpp codegen/lowering/passes_test.cpp)
target_include_directories(rankc_lowering_test PRIVATE programs)
target_link_libraries(rankc_lowering_test PRIVATE rankc::codegen rankc_proof_testing rankc_test_main)
add_test(NAME codegen/lowering COMMAND rankc_lowering_test)
