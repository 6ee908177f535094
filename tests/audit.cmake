# The communication of a step, counted in three ways: `describe`, formulas, and the transfers of the host's
# fabric.
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
add_library(rankc_audit STATIC
  audit/account.cpp audit/drawn.cpp audit/expected.cpp audit/formulas.cpp audit/fraction.cpp audit/gathers.cpp
  audit/layers.cpp audit/ledger.cpp)
target_include_directories(rankc_audit PUBLIC "${CMAKE_CURRENT_SOURCE_DIR}")
target_link_libraries(rankc_audit PUBLIC rankc_drawn_plans rankc::codegen
  PRIVATE nlohmann_json::nlohmann_json fmt::fmt rankc_warnings)
target_compile_options(rankc_audit PRIVATE -O0)
target_compile_definitions(rankc_audit PUBLIC RANKC_COLLECTIVES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/collectives")

# Compiled once for all families.
add_library(rankc_audit_carried OBJECT audit/carried_test.cpp)
target_include_directories(rankc_audit_carried PRIVATE "${rankc_SOURCE_DIR}" programs)
target_link_libraries(rankc_audit_carried PRIVATE
  rankc_audit rankc::trainer rankc_runtime_host rankc_test_options)

# A test of a family's programs. In the program of the layout `audited`, each transfer is once omitted and
# once doubled.
function(rankc_audit_of executable family audited)
  add_executable(${executable} audit/family.cpp ${ARGN})
  target_include_directories(${executable} PRIVATE "${rankc_SOURCE_DIR}" programs)
  target_link_libraries(${executable} PRIVATE
    rankc_audit_carried rankc_audit rankc_${family}_host rankc_test_host_main nlohmann_json::nlohmann_json)
  target_compile_definitions(${executable} PRIVATE RANKC_AUDITED="${audited}")
endfunction()
rankc_audit_of(rankc_audit_test odd hsdp audit/formulas_test.cpp)
add_test(NAME audit COMMAND rankc_audit_test)
rankc_every_program(audit_every_program rankc_audit_test odd)

function(rankc_family_audit name audited)
  rankc_audit_of(rankc_${name}_audit_test ${name} ${audited})
  add_test(NAME audit_${name} COMMAND rankc_${name}_audit_test)
  rankc_every_program(audit_${name}_every_program rankc_${name}_audit_test ${name})
endfunction()
rankc_family_audit(sequences hsdp)
rankc_family_audit(experts ep2_shards_sp)
rankc_family_audit(columns rest)
rankc_family_audit(independent shards_sp)
rankc_family_audit(balance sp)

add_executable(audit_programs audit/programs.cpp)
# The programs are shared objects that find the runtime in this executable.
set_target_properties(audit_programs PROPERTIES ENABLE_EXPORTS ON)
target_link_libraries(audit_programs PRIVATE rankc_audit "$<LINK_LIBRARY:WHOLE_ARCHIVE,rankc_runtime_host>" rankc::trainer
  fmt::fmt CLI11::CLI11 rankc_warnings)
target_compile_options(audit_programs PRIVATE -O0)  # most of their time are the headers of CLI11
target_compile_definitions(audit_programs PRIVATE RANKC_AUDIT_CXX="${CMAKE_CXX_COMPILER}"
  RANKC_AUDIT_INCLUDES="-I'${rankc_SOURCE_DIR}/runtime/core' -I'${CMAKE_CURRENT_SOURCE_DIR}/fuzz'")
add_test(NAME audit_programs COMMAND audit_programs --seed 1 --count 6 --models 6 --folder audit_programs_few)
add_test(NAME audit_programs_long COMMAND audit_programs --seed 2 --count 200 --models 200 --folder audit_programs_long)
set_tests_properties(audit_programs audit_programs_long PROPERTIES PROCESSORS 2)
set_tests_properties(audit_programs_long PROPERTIES LABELS long TIMEOUT 7200)
