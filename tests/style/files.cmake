# Sets `files` to the C++ and CUDA sources that have our style, and to files that match `other_patterns`, relative to ROOT. These are the
# files that git tracks or, without git, as in a source archive, those in the folders of sources. Generated text, its templates and
# the texts of other systems have their own style.
set(patterns *.hpp *.cpp *.cu *.cuh *.ipp *.h ${other_patterns})
set(failed TRUE)
if(EXISTS "${ROOT}/.git")
  execute_process(COMMAND git ls-files -- ${patterns} WORKING_DIRECTORY "${ROOT}"
    OUTPUT_VARIABLE tracked OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
endif()
if(failed)
  set(files)
  foreach(folder IN ITEMS dsl codegen runtime tests)
    list(TRANSFORM patterns PREPEND "${ROOT}/${folder}/" OUTPUT_VARIABLE globs)
    file(GLOB_RECURSE found RELATIVE "${ROOT}" ${globs})
    list(APPEND files ${found})
  endforeach()
else()
  string(REPLACE "\n" ";" files "${tracked}")
endif()
list(FILTER files EXCLUDE REGEX "^(generated|templates|tests/oracles)/")
list(LENGTH files count)
if(count LESS 1000)
  message(FATAL_ERROR "only ${count} sources are found in ${ROOT}; expected 1000 or more")
endif()
