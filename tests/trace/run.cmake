# cmake -DPROGRAM=<program> -DGENERATOR=<its generator> -DSCRATCH=<folder> -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE rc)
  if(NOT rc EQUAL 0)
    list(JOIN ARGN " " command)
    message(NOTICE "${text}")  # as it is: an error's text would be wrapped
    message(FATAL_ERROR "${command}\nended with ${rc}")
  endif()
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
file(MAKE_DIRECTORY "${SCRATCH}")
run("${PROGRAM}" train --steps 2 --trace "${SCRATCH}/step.json")
run("${GENERATOR}" timeline --format trace --out "${SCRATCH}/plan.json")
run("${GENERATOR}" timeline --format html --measured "${SCRATCH}/step.json" --out "${SCRATCH}/step.html")

file(READ "${SCRATCH}/step.html" page)
foreach(title IN ITEMS "planned" "measured, step 2")
  if(NOT page MATCHES "\"title\":\"${title}\"")
    message(FATAL_ERROR "${SCRATCH}/step.html has no rows that are ${title}")
  endif()
endforeach()

# Every event that is planned is measured, under the same name, rank and stream. (Reductions and steps are measured as what
# they are made of.)
file(STRINGS "${SCRATCH}/plan.json" planned REGEX "\"ph\":\"X\"")
list(FILTER planned EXCLUDE REGEX "REDUCE_GRAD|STEP")
file(READ "${SCRATCH}/step.json" measured)
foreach(event IN LISTS planned)
  string(REGEX MATCH "^.*\"tid\":[0-9]" key "${event}")
  string(FIND "${measured}" "${key}" at)
  if(key STREQUAL "" OR at EQUAL -1)
    message(FATAL_ERROR "${SCRATCH}/step.json lacks ${event}")
  endif()
endforeach()
list(LENGTH planned count)
if(NOT count EQUAL 32)  # 4 microbatches, there and back, on 2 ranks: 16 actions and both ends of 8 messages
  message(FATAL_ERROR "${SCRATCH}/plan.json has ${count} events")
endif()
