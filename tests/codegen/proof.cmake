# The proof of handmade programs, compared with an execution model that runs them.
add_library(rankc_proof_testing STATIC
  codegen/proof/pipeline_program.cpp
  codegen/proof/random_program.cpp
  codegen/proof/execution_model.cpp
  codegen/proof/find_harm.cpp
  codegen/proof/mutations.cpp
  codegen/proof/judge.cpp)
target_include_directories(rankc_proof_testing PUBLIC codegen PRIVATE "${PROJECT_SOURCE_DIR}/runtime/core")
target_link_libraries(rankc_proof_testing PUBLIC rankc::proof rankc::certificate rankc::verify PRIVATE rankc_warnings)
# Designated initializers leave out the lists that stay empty.
target_compile_options(rankc_proof_testing PUBLIC -Wno-missing-field-initializers)

add_executable(rankc_proof_test
  codegen/proof/prove_test.cpp
  codegen/proof/races_test.cpp
  codegen/certificate/certificate_test.cpp
  codegen/proof/by_rows_test.cpp
  codegen/verify/large_certificates_test.cpp
  codegen/proof/mutations_test.cpp)
find_package(nlohmann_json REQUIRED)
target_compile_definitions(rankc_proof_test PRIVATE RANKC_SOURCES="${PROJECT_SOURCE_DIR}")
target_link_libraries(rankc_proof_test PRIVATE
  rankc_proof_testing rankc::proof nlohmann_json::nlohmann_json rankc_test_main)
set_target_properties(rankc_proof_test PROPERTIES computes ON)
add_test(NAME codegen/proof COMMAND rankc_proof_test)
rankc_every_mutant(codegen/proof rankc_proof_test "a mutant of a pipeline*,a random program*")
