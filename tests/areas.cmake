# `ctest -L AREA` runs the tests of an area. The tests that take longest start first, so that none of them is left alone at the
# end: a COST is about its seconds on one core, and includes the time in which a test waits.
set(rankc_areas
  "dsl:^dsl"
  "codegen:^(codegen|generated|trace|readme|cost_model)"
  "equivalence:^(equivalence|translation|audit)"
  "core:^(runtime_|rows|protocols)"
  "launch:^launch"
  "trainer:^(trainer|hugging_face|logits)"
  "programs:^(programs|fuzz|odd|experts|columns|independent|balance|routing|recompute|lora|fp8|sequences|documents|optimizer|inputs|encoders|masked|packed|weighted|attention)"
  "install:^install"
  "style:^(style|folders)")
set(rankc_costs
  launch:40 launch/processes/signals:38 equivalence/field:36 codegen/lowering:32 hugging_face:30 launch/faults:26
  launch/processes/starts:25 install/find_package:25 equivalence:22 trainer:20 fp8:20 programs_parity:18 translation/mutants:20
  launch/processes/faults:16 translation/examples:15 install/names:14 codegen/proof:12 fuzz:11 dsl/rejects/typed/g++:11
  odd:10 translation/experts:10 translation/starts:10 codegen/tool:10 programs_losses_f64:9 rows:9
  dsl/rejects/schedule/g++:8 dsl/rejects/memory/g++:8 dsl/rejects/recipe/g++:8 translation/sequences:8 experts:9 columns:8
  documents:8 attention:8 optimizer:7 fuzz_rounded:8)

# Label the tests of the current folder. Each has one area.
function(rankc_label_tests)
  get_property(tests DIRECTORY PROPERTY TESTS)
  foreach(test IN LISTS tests)
    set(found)
    foreach(area IN LISTS rankc_areas)
      string(REGEX REPLACE ":.*" "" name "${area}")
      string(REGEX REPLACE "^[a-z]*:" "" pattern "${area}")
      if(test MATCHES "${pattern}")
        list(APPEND found ${name})
      endif()
    endforeach()
    list(LENGTH found count)
    if(NOT count EQUAL 1)
      message(FATAL_ERROR "the test ${test} has ${count} areas (${found}); tests/areas.cmake gives each test one")
    endif()
    set_property(TEST ${test} APPEND PROPERTY LABELS ${found})
  endforeach()
  foreach(cost IN LISTS rankc_costs)
    string(REGEX REPLACE ":[0-9]*$" "" test "${cost}")
    string(REGEX REPLACE "^.*:" "" seconds "${cost}")
    if(test IN_LIST tests)
      set_property(TEST ${test} PROPERTY COST ${seconds})
    endif()
  endforeach()
endfunction()
