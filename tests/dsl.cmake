# Tests of the language: units, plans that must not compile, and the same op lists from every compiler.
add_executable(rankc_dsl_test
  dsl/custom_test.cpp
  dsl/diagnostic_test.cpp
  dsl/dims_test.cpp
  dsl/ops_test.cpp
  dsl/optimizer_test.cpp
  dsl/parameter_test.cpp
  dsl/peak_bytes_test.cpp
  dsl/plan_test.cpp
  dsl/schedule_test.cpp
  dsl/schedules_test.cpp
  dsl/split_layers_test.cpp
  dsl/models/models_test.cpp
  dsl/axes/regions_test.cpp
  dsl/axes/searched_test.cpp
  dsl/axes/table_test.cpp
  dsl/trace/collectives_test.cpp
  dsl/trace/gradients_test.cpp
  dsl/trace/rules_test.cpp
  dsl/trace/tokens_test.cpp)
target_include_directories(rankc_dsl_test PRIVATE dsl)
target_link_libraries(rankc_dsl_test PRIVATE rankc::dsl rankc_test_main)
target_compile_options(rankc_dsl_test PRIVATE -Wno-missing-field-initializers)
add_test(NAME dsl COMMAND rankc_dsl_test)

# Rules over all values of many sizes, and the digits of 25,000 numbers; with optimization they take a sixth
# of the time.
add_executable(rankc_dsl_rules_test dsl/rules_test.cpp dsl/text_test.cpp)
target_include_directories(rankc_dsl_rules_test PRIVATE dsl)
target_link_libraries(rankc_dsl_rules_test PRIVATE rankc::dsl rankc_test_main)
target_compile_options(rankc_dsl_rules_test PRIVATE -Wno-missing-field-initializers)
set_target_properties(rankc_dsl_rules_test PROPERTIES computes ON)
add_test(NAME dsl/rules COMMAND rankc_dsl_rules_test)

# Dims compared with other systems and with counts.
find_package(nlohmann_json REQUIRED)
add_executable(rankc_dsl_dims_test
  dsl/dims/legality_test.cpp
  dsl/dims/mesh_test.cpp
  dsl/dims/oracle_models_test.cpp
  dsl/dims/oracles_test.cpp
  dsl/dims/systems.cpp)
target_compile_definitions(rankc_dsl_dims_test PRIVATE RANKC_DIMS_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/dims")
target_link_libraries(rankc_dsl_dims_test PRIVATE rankc::dsl rankc_test_main nlohmann_json::nlohmann_json)
target_compile_options(rankc_dsl_dims_test PRIVATE -Wno-missing-field-initializers)
add_test(NAME dsl/dims COMMAND rankc_dsl_dims_test)

# The published schedules, compared with the output of their authors' code.
add_executable(rankc_schedules_test
  dsl/schedules/communicate_test.cpp
  dsl/schedules/csv_test.cpp
  dsl/schedules/fuse_test.cpp
  dsl/schedules/published_test.cpp
  dsl/schedules/soundness_test.cpp
  dsl/schedules/stage_actions_test.cpp
  dsl/schedules/timing_test.cpp)
target_compile_definitions(rankc_schedules_test PRIVATE RANKC_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/schedules")
target_link_libraries(rankc_schedules_test PRIVATE rankc::dsl rankc_test_main)
target_compile_options(rankc_schedules_test PRIVATE -Wno-missing-field-initializers)
add_test(NAME dsl/schedules COMMAND rankc_schedules_test)

# The constructed schedules, and the search, compared with Sea AI Lab's.
add_executable(dsl_heuristics dsl/heuristics/best_test.cpp dsl/heuristics/figures_test.cpp)
target_compile_definitions(dsl_heuristics PRIVATE RANKC_ORACLES="${CMAKE_CURRENT_SOURCE_DIR}/oracles/schedules")
target_link_libraries(dsl_heuristics PRIVATE rankc::dsl rankc_test_main)
target_compile_options(dsl_heuristics PRIVATE -Wno-missing-field-initializers)
set_target_properties(rankc_dsl_dims_test dsl_heuristics PROPERTIES computes ON)
add_test(NAME dsl/heuristics COMMAND dsl_heuristics)
rankc_every_mutant(dsl/heuristics dsl_heuristics "costs and a memory limit*")

# All headers in either order, and each alone.
set(boost_includes)
foreach(folder IN LISTS Boost_INCLUDE_DIRS)
  list(APPEND boost_includes -isystem "${folder}")
endforeach()
foreach(name IN ITEMS dsl/headers dsl/headers_alone)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} "-DFOLDER=${PROJECT_SOURCE_DIR}/dsl" -DNAME=${name}
    "-DCOMPILER=${CMAKE_CXX_COMPILER};-std=c++20;-I${PROJECT_SOURCE_DIR}/dsl;-I${PROJECT_SOURCE_DIR}/runtime/core;${boost_includes}"
    "-DOUT=${CMAKE_CURRENT_BINARY_DIR}/${name}" -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/headers.cmake")
endforeach()
set_tests_properties(dsl/headers_alone PROPERTIES LABELS long)

# No folders include each other in a circle.
add_test(NAME folders COMMAND ${CMAKE_COMMAND} "-DROOT=${PROJECT_SOURCE_DIR}" -P "${CMAKE_CURRENT_SOURCE_DIR}/folders.cmake")

# g++ and clang are two front ends that must accept the same plans. clang takes plans from version 17 on.
function(rankc_front_end name compiler)
  set(plain "${compiler}" -std=c++20 "-I${PROJECT_SOURCE_DIR}/dsl" "-I${PROJECT_SOURCE_DIR}/runtime/core" ${boost_includes} ${ARGN})
  # <rankc/rankc.hpp> takes about half of the time of a refused plan. One test compiles it for all of them.
  set(header "${CMAKE_CURRENT_BINARY_DIR}/dsl_precompiled/${name}.hpp")
  file(CONFIGURE OUTPUT "${header}" CONTENT "#include <rankc/rankc.hpp>\n")
  set(command ${plain} -include "${header}")
  add_test(NAME dsl/precompiled/${name} COMMAND ${plain} -x c++-header "${header}" -o "${header}.gch")
  set_tests_properties(dsl/precompiled/${name} PROPERTIES FIXTURES_SETUP dsl_precompiled_${name})
  foreach(family IN ITEMS balance capacity columns dims documents experts gates independent inputs linears loss memory model norms ops parts recipe schedule several typed)
    add_test(NAME dsl/rejects/${family}/${name}
      COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/dsl/rejects/${family}.cpp" "-DCOMPILER=${command}"
              -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/expect_errors.cmake")
    add_test(NAME dsl/accepts/${family}/${name}
      COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/dsl/rejects/${family}.cpp" "-DCOMPILER=${command}"
              -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/expect_valid.cmake")
    set_tests_properties(dsl/rejects/${family}/${name} dsl/accepts/${family}/${name} PROPERTIES FIXTURES_REQUIRED dsl_precompiled_${name})
    set_tests_properties(dsl/accepts/${family}/${name} PROPERTIES LABELS long)
    if(name STREQUAL "clang++")
      set_tests_properties(dsl/rejects/${family}/${name} PROPERTIES LABELS long)  # g++ refuses the same ones each time
    endif()
  endforeach()
  # The first lines of an error.
  foreach(mistake IN ITEMS broken_rule members_in_another_order misspelt_dim misspelt_member model_not_constexpr
                           plan_not_constexpr schedule_without_its_header)
    add_test(NAME dsl/mistakes/${mistake}/${name}
      COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/dsl/mistakes/${mistake}.cpp"
              "-DCOMPILER=${command};-Werror" -DNAME=${name} -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/expect_lines.cmake")
    set_tests_properties(dsl/mistakes/${mistake}/${name} PROPERTIES FIXTURES_REQUIRED dsl_precompiled_${name})
  endforeach()
  add_test(NAME dsl/mistakes/undefined_schedules/${name}
    COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DFOLDER=${PROJECT_SOURCE_DIR}/dsl" "-DCOMPILER=${command}"
            "-DOUT=${CMAKE_CURRENT_BINARY_DIR}/undefined_schedules_${name}.cpp"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/undefined_schedules.cmake")
  add_test(NAME dsl/listing/${name}
    COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DFOLDER=${CMAKE_CURRENT_SOURCE_DIR}/dsl/listing" "-DCOMPILER=${command}"
            "-DOUT=${CMAKE_CURRENT_BINARY_DIR}/listing_${name}" -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/listing/compare.cmake")
  set_tests_properties(dsl/mistakes/undefined_schedules/${name} dsl/listing/${name} PROPERTIES FIXTURES_REQUIRED dsl_precompiled_${name})
endfunction()
# An axis is added in one file, the table of axes. The test adds one to a copy of it.
function(rankc_added_axis name compiler)
  add_test(NAME dsl/axes/added/${name}
    COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DFOLDER=${PROJECT_SOURCE_DIR}/dsl" "-DCOMPILER=${compiler};-std=c++20;-I${PROJECT_SOURCE_DIR}/dsl;-I${PROJECT_SOURCE_DIR}/runtime/core;${boost_includes}"
            "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/dsl/axes/added.cpp" "-DOUT=${CMAKE_CURRENT_BINARY_DIR}/added_axis_${name}"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/axes/add_axis.cmake")
endfunction()
find_program(RANKC_TEST_GXX g++)
find_program(RANKC_TEST_CLANGXX NAMES clang++-19 clang++-18 clang++-17)
if(RANKC_TEST_GXX)
  # Rules have deep call chains: remembering the results of more than the eight outermost calls saves a sixth
  # of the time.
  rankc_front_end(g++ "${RANKC_TEST_GXX}" -fconstexpr-ops-limit=2147483647 -fconstexpr-cache-depth=64 ${rankc_gxx_without_collection})
  rankc_added_axis(g++ "${RANKC_TEST_GXX};-fconstexpr-ops-limit=2147483647;-fconstexpr-cache-depth=64;${rankc_gxx_without_collection}")
  # The compiler's constexpr operations limit the search for a fix. It takes 61 million (7.5 s).
  add_test(NAME dsl/operations/memory
    COMMAND ${rankc_yielding} ${CMAKE_COMMAND} "-DSOURCE=${CMAKE_CURRENT_SOURCE_DIR}/dsl/operations/memory.cpp"
            "-DCOMPILER=${RANKC_TEST_GXX};-std=c++20;-I${PROJECT_SOURCE_DIR}/dsl;-I${PROJECT_SOURCE_DIR}/runtime/core;${boost_includes};-fconstexpr-ops-limit=90000000;-fconstexpr-cache-depth=64;${rankc_gxx_without_collection}"
            -P "${CMAKE_CURRENT_SOURCE_DIR}/dsl/expect_errors.cmake")
  set_tests_properties(dsl/operations/memory PROPERTIES LABELS long)
endif()
if(RANKC_TEST_CLANGXX)
  rankc_front_end(clang++ "${RANKC_TEST_CLANGXX}" -fconstexpr-steps=2147483647 -ferror-limit=0)
  rankc_added_axis(clang++ "${RANKC_TEST_CLANGXX};-fconstexpr-steps=2147483647")
  set_tests_properties(dsl/axes/added/clang++ PROPERTIES LABELS long)
endif()
